import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, SandboxDriver, SandboxLimits, Snapshot } from "./contract.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { NoSandboxError } from "../errors/sluice-error.ts";

/** A lease as a caller gets it: `start` says where it came from. It is the caller's to close; it never comes back to the pool. */
export interface TakenLease {
  readonly lease: Lease;
  readonly start: "pool" | Lease["start"];
}

export interface PoolOptions {
  readonly driver: SandboxDriver;
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  /** How many warm sandboxes wait; 0 is allowed. */
  readonly size: number;
  readonly gate: Gate;
  /** A warm sandbox is replaced after this time, so that none waits for ever. */
  readonly maxIdleMs?: number;
}

const RETRY_MS = 5_000;
const MAX_IDLE_MS = 10 * 60_000;
/** Making a sandbox takes a core for half a second: whoever took one has it to himself for his first cell. */
const REFILL_DELAY_MS = 500;

export function createSandboxPool(options: PoolOptions): SandboxPool {
  return new SandboxPool(options);
}

/** Keeps sandboxes ready. A first call takes a warm one; the pool refills behind it. */
export class SandboxPool implements AsyncDisposable {
  readonly driver: SandboxDriver;
  readonly #options: PoolOptions;
  readonly #waiting: Lease[] = [];
  readonly #ending = new AbortController();
  readonly #stopGivingUp: () => void;
  #filling: Promise<void> | null = null;
  #hurry = new AbortController();
  #retry: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.driver = options.driver;
    this.#options = options;
    this.#stopGivingUp = options.gate.onWaiting(() => this.#giveUp());
    this.#refill();
  }

  get warm(): number {
    return this.#waiting.length;
  }

  async take({ limits = this.#options.limits, signal }: { limits?: SandboxLimits; signal?: AbortSignal | undefined }): Promise<TakenLease> {
    signal?.throwIfAborted();
    const { gate } = this.#options;
    const same = sameLimits(limits, this.#options.limits);
    if (same && this.warm === 0 && this.#filling !== null && gate.taken >= gate.places) await this.#hasten(); // the last place is being made warm
    const warm = same ? this.#waiting.shift() : undefined;
    const lease = warm ?? (await this.#open(limits, await gate.enter(signal), signal));
    this.#refill(REFILL_DELAY_MS);
    return { lease, start: warm === undefined ? lease.start : "pool" };
  }

  /** Resolves when the pool is as full as it can be now; for benches and tests. */
  async filled(): Promise<void> {
    this.#refill();
    await this.#hasten();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the pool is closing"));
    this.#stopGivingUp();
    clearTimeout(this.#retry);
    await this.#filling;
    await Promise.all(this.#waiting.splice(0).map((lease) => lease.close()));
  }

  async #open(limits: SandboxLimits, release: () => void, signal?: AbortSignal): Promise<Lease> {
    const { driver, snapshot } = this.#options;
    try {
      const lease = await driver.open({ snapshot, limits, networkPolicy: "deny-all", ...(signal && { signal }) });
      void lease.died.then(release);
      return lease;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** A warm sandbox is never in the way of somebody who waits for a place: a caller with other limits, or a self-test. */
  #giveUp(): boolean {
    const warm = this.#waiting.shift();
    void warm?.close();
    return warm !== undefined;
  }

  /** Started behind a caller's back, so it never throws; what is wrong shows when a caller opens one itself. */
  #refill(delayMs = 0): void {
    if (this.#filling !== null || this.#ending.signal.aborted || this.warm >= this.#options.size) return;
    this.#hurry = new AbortController();
    const patience = AbortSignal.any([this.#hurry.signal, this.#ending.signal]);
    this.#filling = this.#fill(sleep(delayMs, undefined, { signal: patience, ref: false }).catch(() => {})).finally(() => {
      this.#filling = null;
    });
  }

  /** Somebody waits for the pool: no more patience. */
  async #hasten(): Promise<void> {
    this.#hurry.abort();
    await this.#filling;
  }

  async #fill(delay: Promise<void>): Promise<void> {
    const { gate, limits, size } = this.#options;
    await delay;
    while (this.warm < size && !this.#ending.signal.aborted) {
      const release = gate.tryEnter();
      if (release === null) return;
      try {
        this.#keep(await warmUp(await this.#open(limits, release, this.#ending.signal)));
      } catch {
        this.#retry ??= setTimeout(() => {
          this.#retry = undefined;
          this.#refill();
        }, RETRY_MS).unref();
        return;
      }
    }
  }

  #keep(lease: Lease): void {
    if (this.#ending.signal.aborted) {
      void lease.close();
      return;
    }
    this.#waiting.push(lease);
    const old = setTimeout(() => {
      if (this.#drop(lease)) void lease.close();
    }, this.#options.maxIdleMs ?? MAX_IDLE_MS).unref();
    void lease.died.then(() => {
      clearTimeout(old);
      this.#drop(lease);
    });
  }

  /** Whether it was waiting; another takes its place. */
  #drop(lease: Lease): boolean {
    const at = this.#waiting.indexOf(lease);
    if (at === -1) return false;
    this.#waiting.splice(at, 1);
    this.#refill();
    return true;
  }
}

async function warmUp(lease: Lease): Promise<Lease> {
  if (lease.needsWarmUp !== true) return lease;
  await lease.channel.send({ type: "warm" });
  const frame = await lease.channel.receive();
  if (frame?.header.type === "warmed") return lease;
  await lease.close();
  throw new Error("the sandbox did not warm up");
}

function sameLimits(a: SandboxLimits, b: SandboxLimits): boolean {
  return a === b || (Object.keys(a) as (keyof SandboxLimits)[]).every((name) => isHostSide(name) || a[name] === b[name]);
}

/** Limits that are applied per cell by the host, not when a sandbox is opened. */
function isHostSide(name: keyof SandboxLimits): boolean {
  return name !== "memoryBytes" && name !== "processes" && name !== "scratchBytes" && name !== "openFiles" && name !== "inputBytes";
}

/** Bounds all sandboxes of a runtime together, of every driver, pooled ones included. */
export type Gate = Limiter;

export function createGate({ places, deadlineMs }: { places: number; deadlineMs: number }): Gate {
  const toError = (): NoSandboxError =>
    new NoSandboxError({
      code: "SANDBOX_QUEUE_TIMEOUT",
      message: `No sandbox became free within ${deadlineMs / 1000} s: all ${places} are in use.`,
      details: { maxSandboxes: places, deadlineMs },
    });
  return createLimiter({ places, deadlineMs, toError });
}
