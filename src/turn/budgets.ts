/** Steps of a turn: one model call each. */
export const STEP_BUDGET = 10;
/** More of them when a chart was asked for: fetch, draw, mend, draw again. */
export const CHART_REQUIRED_STEP_BUDGET_BOOST = 4;

/** What a turn may use. */
export interface TurnBudgets {
  readonly steps: number;
  readonly chartBoost: number;
  readonly wallMs: number;
  /** Of the wall time, what is kept back so that the answer can still be written. */
  readonly synthesisMs: number;
  /** One preview that the model reads, at least 256. */
  readonly previewBytes: number;
  /** All previews that the model rereads in one step. */
  readonly stepBytes: number;
  /** Other answers that it rereads: of cells, scripts and searches. */
  readonly answerBytes: number;
  /** What it wrote itself in earlier turns and steps: text, and arguments of calls. */
  readonly saidBytes: number;
  /** How long tools that still run are waited for at the end. */
  readonly settleMs: number;
  /** Input and output tokens together. */
  readonly tokens?: number | undefined;
  readonly cost?: CostBudget | undefined;
}

/** In whatever currency the prices are given. */
export interface CostBudget {
  readonly maximum: number;
  readonly inputPerMillionTokens: number;
  readonly outputPerMillionTokens: number;
}

export const defaultBudgets: TurnBudgets = Object.freeze({
  steps: STEP_BUDGET,
  chartBoost: CHART_REQUIRED_STEP_BUDGET_BOOST,
  wallMs: 5 * 60_000,
  synthesisMs: 30_000,
  previewBytes: 4096,
  stepBytes: 24_576,
  answerBytes: 65_536,
  saidBytes: 65_536,
  settleMs: 5_000,
});

export function withBudgets(changes: Partial<TurnBudgets> = {}): TurnBudgets {
  const set = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const budgets = { ...defaultBudgets, ...set };
  return { ...budgets, synthesisMs: Math.min(budgets.synthesisMs, Math.floor(budgets.wallMs / 5)) };
}
