import type { Clock } from "./contract.ts";

/** Each failure in a row doubles the wait before the next attempt, up to a bound. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #clock: Clock;
  #failures = 0;
  #nextAt = -Infinity;

  constructor({ firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number }, clock: Clock) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#clock = clock;
  }

  /** Zero when an attempt may be made now. */
  get remainingMs(): number {
    return Math.max(0, this.#nextAt - this.#clock.now());
  }

  failed(): void {
    this.#nextAt = this.#clock.now() + Math.min(this.#maxMs, this.#firstMs * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#nextAt = -Infinity;
  }
}
