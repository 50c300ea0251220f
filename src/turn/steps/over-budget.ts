import type { Turn } from "../open-turn.ts";

/** The sentence that says which budget is spent; null while there is some left. */
export function overBudget({ ledger, budgets }: Pick<Turn, "ledger" | "budgets">): string | null {
  const { input, output } = ledger.tokens;
  if (budgets.tokens !== undefined && input + output >= budgets.tokens)
    return `The turn used ${input + output} tokens, its budget is ${budgets.tokens}.`;
  if (budgets.cost === undefined) return null;
  const { maximum, inputPerMillionTokens, outputPerMillionTokens } = budgets.cost;
  const cost = (input * inputPerMillionTokens + output * outputPerMillionTokens) / 1e6;
  return cost >= maximum ? `The turn cost ${Number(cost.toPrecision(3))}, its budget is ${maximum}.` : null;
}
