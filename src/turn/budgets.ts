import { z } from "zod";
import { defaultEvidenceBudget } from "../evidence/evidence-store.ts";
import { count, countOrNone, milliseconds } from "../protocol/setting.ts";
import type { Tokens } from "./ledger.ts";

/** Steps of a turn: one model call each. */
export const STEP_BUDGET = 10;
/** More of them when a chart was asked for: fetch, draw, mend, draw again. */
export const CHART_REQUIRED_STEP_BUDGET_BOOST = 4;

/** In whatever currency the prices are given. */
const cost = z.strictObject({
  maximum: z.number().gt(0),
  inputPerMillionTokens: z.number().min(0),
  outputPerMillionTokens: z.number().min(0),
});

/** What a turn may use, as far as a configuration sets it. */
export const budgetsSchema = z.strictObject({
  steps: count.max(200).default(STEP_BUDGET).describe("steps (model calls) per turn, not counting the plan and the final answer"),
  chartBoost: countOrNone.max(200).default(CHART_REQUIRED_STEP_BUDGET_BOOST).describe("extra steps when the user asked for a chart"),
  wallMs: milliseconds.default(5 * 60_000).describe("time limit for a turn"),
  previewBytes: z.int().min(256).default(defaultEvidenceBudget.previewBytes).describe("size of the preview of one tool output"),
  stepBytes: z
    .int()
    .min(1024)
    .default(defaultEvidenceBudget.stepBytes)
    .describe("total size of the previews that the model reads in one step"),
  tokens: count.optional().describe("input and output tokens per turn; default: unlimited"),
  cost: cost
    .optional()
    .describe("cost limit per turn: `maximum`, `inputPerMillionTokens` and `outputPerMillionTokens`, all in the same currency"),
});

export type CostBudget = Readonly<z.infer<typeof cost>>;

/** What a turn may use. */
export interface TurnBudgets extends Readonly<z.infer<typeof budgetsSchema>> {
  /** Of the wall time, what is kept back so that the answer can still be written. */
  readonly synthesisMs: number;
  /** Answers other than previews that the model rereads: of cells, scripts and searches. */
  readonly answerBytes: number;
  /** What it wrote itself in earlier turns and steps: text, and arguments of calls. */
  readonly saidBytes: number;
  /** How long tools that still run are waited for at the end. */
  readonly settleMs: number;
}

const defaultBudgets: TurnBudgets = Object.freeze({
  ...budgetsSchema.parse({}),
  synthesisMs: 30_000,
  answerBytes: 65_536,
  saidBytes: 65_536,
  settleMs: 5_000,
});

export function withBudgets(changes: Partial<TurnBudgets> = {}): TurnBudgets {
  const set = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const budgets = { ...defaultBudgets, ...set };
  return { ...budgets, synthesisMs: Math.min(budgets.synthesisMs, Math.floor(budgets.wallMs / 5)) };
}

/** The sentence that says which budget is spent; null while there is some left. */
export function overBudget({ input, output }: Tokens, budgets: Pick<TurnBudgets, "tokens" | "cost">): string | null {
  if (budgets.tokens !== undefined && input + output >= budgets.tokens)
    return `The turn used ${input + output} tokens, its budget is ${budgets.tokens}.`;
  if (budgets.cost === undefined) return null;
  const { maximum, inputPerMillionTokens, outputPerMillionTokens } = budgets.cost;
  const cost = (input * inputPerMillionTokens + output * outputPerMillionTokens) / 1e6;
  return cost >= maximum ? `The turn cost ${Number(cost.toPrecision(3))}, its budget is ${maximum}.` : null;
}

/** Why a turn has to stop, as signals. Closing it lets go of its timers. */
export interface TurnClock extends Disposable {
  /** Of the whole turn: the caller gave up, or the wall time is over. */
  readonly signal: AbortSignal;
  /** Of the steps: also when what is left is needed for the answer. */
  readonly stepsSignal: AbortSignal;
  /** `aborted`: the caller gave up. Null while the turn may go on. */
  stopped(): "aborted" | "time" | null;
  elapsedMs(): number;
  /** The steps are over: what still runs for them is told to stop. */
  endSteps(): void;
}

export function createTurnClock({ wallMs, synthesisMs }: Pick<TurnBudgets, "wallMs" | "synthesisMs">, caller?: AbortSignal): TurnClock {
  const startedAt = performance.now();
  const wall = new AbortController();
  const steps = new AbortController();
  const timers = [
    setTimeout(() => wall.abort(timeOver(wallMs)), wallMs),
    setTimeout(() => steps.abort(timeOver(wallMs)), wallMs - synthesisMs),
  ];
  const signal = AbortSignal.any([wall.signal, ...(caller === undefined ? [] : [caller])]);
  return {
    signal,
    stepsSignal: AbortSignal.any([signal, steps.signal]),
    stopped: () => (caller?.aborted ? "aborted" : wall.signal.aborted || steps.signal.aborted ? "time" : null),
    endSteps: () => steps.abort(new DOMException("The steps of the turn are over.", "AbortError")),
    elapsedMs: () => performance.now() - startedAt,
    [Symbol.dispose]: () => timers.forEach((timer) => clearTimeout(timer)),
  };
}

function timeOver(wallMs: number): DOMException {
  return new DOMException(`The turn's ${wallMs / 1000} s are over.`, "TimeoutError");
}
