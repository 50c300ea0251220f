import type { TurnBudgets } from "./budgets.ts";

/** Why a turn has to stop, as signals. Closing it lets go of its timers. */
export interface TurnClock extends Disposable {
  /** Of the whole turn: the caller gave up, or the wall time is over. */
  readonly signal: AbortSignal;
  /** Of the steps: also when what is left is needed for the answer. */
  readonly stepsSignal: AbortSignal;
  /** Null while the turn may go on. */
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
