import { z } from "zod";
import { defaultEvidenceBudget } from "../evidence/evidence-store.ts";
import { count, countOrNone, milliseconds } from "../protocol/setting.ts";
import type { Ledger } from "./ledger.ts";

/** Default number of steps of a turn. A step is one model call. */
export const STEP_BUDGET = 10;
/** Extra steps when the user asks for a chart: fetch, draw, fix, draw again. */
export const CHART_REQUIRED_STEP_BUDGET_BOOST = 4;

/** All numbers are in one currency, which the user chooses. */
const cost = z.strictObject({
  maximum: z.number().gt(0),
  inputPerMillionTokens: z.number().min(0),
  outputPerMillionTokens: z.number().min(0),
});

export const defaultWallMs = 5 * 60_000;

/**
 * The configurable limits of a turn; docs/configuration.md is generated from it. Where a limit is enforced: a limit of model calls in
 * `describeSpentModelBudget`, a limit that only ends the steps in `endByBudget` (steps/run-steps.ts), a limit that refuses calls in `createTurnCalls`
 * (steps/turn-calls.ts), a limit of what a call publishes in `publish` (interpreter/code-interpreter.ts) and `renderChart` (interpreter/render-chart.ts).
 */
export const budgetsSchema = z.strictObject({
  steps: count.max(200).default(STEP_BUDGET).describe("steps (model calls) per turn, not counting the plan and the final answer"),
  chartBoost: countOrNone.max(200).default(CHART_REQUIRED_STEP_BUDGET_BOOST).describe("extra steps when the user asked for a chart"),
  wallMs: milliseconds
    .default(defaultWallMs)
    .describe("time limit for a turn; at most the life of a sandbox, `limits.sandbox.leaseTimeoutMs`"),
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

/** Limits that only the library can set. */
const libraryBudgets = {
  /** Part of the wall time that is reserved for writing the answer; at most a fifth of it. */
  synthesisMs: 30_000,
  /** Tool results without a preview that the model rereads: of cells, scripts and searches. The newest one does not count. */
  answerBytes: 65_536,
  /** What the model itself wrote in earlier steps: text and call arguments. */
  saidBytes: 65_536,
  /** How long to wait at the end for tools that still run. */
  settleMs: 5_000,
};

export interface TurnBudgets extends Readonly<z.infer<typeof budgetsSchema>>, Readonly<typeof libraryBudgets> {}

const defaultBudgets: TurnBudgets = Object.freeze({ ...budgetsSchema.parse({}), ...libraryBudgets });

export function withBudgets(changes: Partial<TurnBudgets> = {}): TurnBudgets {
  const defined = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const budgets = { ...defaultBudgets, ...defined };
  return { ...budgets, synthesisMs: Math.min(budgets.synthesisMs, Math.floor(budgets.wallMs / 5)) };
}

/**
 * Which budget of model calls is spent, as a sentence for the user; null while the model may be asked again. A spent one ends the steps, and the final
 * answer is then written without the model. Steps are counted by `runSteps`, time by the `TurnClock`.
 */
export function describeSpentModelBudget(
  { tokens: { input, output } }: Pick<Ledger, "tokens">,
  budgets: Pick<TurnBudgets, "tokens" | "cost">,
): string | null {
  if (budgets.tokens !== undefined && input + output >= budgets.tokens)
    return `The turn used ${input + output} tokens; its budget is ${budgets.tokens}.`;
  if (budgets.cost === undefined) return null;
  const { maximum, inputPerMillionTokens, outputPerMillionTokens } = budgets.cost;
  const cost = (input * inputPerMillionTokens + output * outputPerMillionTokens) / 1e6;
  return cost >= maximum ? `The turn cost ${Number(cost.toPrecision(3))}; its budget is ${maximum}.` : null;
}

/** The time limits of a turn as abort signals. Disposing clears the timers. */
export interface TurnClock extends Disposable {
  /** Aborts when the caller aborts or the wall time ends. */
  readonly signal: AbortSignal;
  /** Also aborts when only the time reserved for the answer is left. */
  readonly stepsSignal: AbortSignal;
  /** `aborted`: by the caller. `time`: by a time limit, and after `endSteps`. Null while the steps may continue. */
  stopped(): "aborted" | "time" | null;
  elapsedMs(): number;
  /** Aborts `stepsSignal`, so that calls which still run are stopped. */
  endSteps(): void;
}

export function createTurnClock({ wallMs, synthesisMs }: Pick<TurnBudgets, "wallMs" | "synthesisMs">, caller?: AbortSignal): TurnClock {
  const startedAt = performance.now();
  const wall = new AbortController();
  const steps = new AbortController();
  const timers = [
    setTimeout(() => wall.abort(turnTimeout(wallMs)), wallMs),
    setTimeout(() => steps.abort(turnTimeout(wallMs)), wallMs - synthesisMs),
  ];
  const signal = AbortSignal.any([wall.signal, ...(caller === undefined ? [] : [caller])]);
  return {
    signal,
    stepsSignal: AbortSignal.any([signal, steps.signal]),
    stopped: () => (caller?.aborted ? "aborted" : wall.signal.aborted || steps.signal.aborted ? "time" : null),
    endSteps: () => steps.abort(new DOMException("The steps of the turn have ended.", "AbortError")),
    elapsedMs: () => performance.now() - startedAt,
    [Symbol.dispose]: () => timers.forEach((timer) => clearTimeout(timer)),
  };
}

function turnTimeout(wallMs: number): DOMException {
  return new DOMException(`The turn reached its time limit of ${wallMs / 1000} s.`, "TimeoutError");
}
