import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, OpenOptions, SandboxDriver, SandboxLimits, Snapshot } from "./contract.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { NoSandboxError } from "../errors/sluice-error.ts";

/** A lease that now belongs to the caller, who must close it. `start` says where it came from. */
export interface TakenLease {
  readonly lease: Lease;
  readonly start: "pool" | Lease["start"];
}

export interface PoolOptions {
  readonly driver: SandboxDriver;
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  /** Number of warm sandboxes to keep ready. May be 0. */
  readonly size: number;
  readonly gate: Gate;
  /** A warm sandbox that was not taken is replaced after this time. */
  readonly maxIdleMs?: number;
}

const RETRY_MS = 5_000;
const MAX_IDLE_MS = 10 * 60_000;
/** Opening a sandbox keeps one core busy for half a second. Wait, so that the first cell in the sandbox just taken does not compete with it. */
const REFILL_DELAY_MS = 500;

/** Keeps warm sandboxes ready and replaces each one that is taken, in the background. */
export class SandboxPool implements AsyncDisposable {
  readonly driver: SandboxDriver;
  readonly #options: PoolOptions;
  readonly #warmLeases: Lease[] = [];
  readonly #closing = new AbortController();
  readonly #unregister: () => void;
  #filling: Promise<void> | null = null;
  #skipDelay = new AbortController();
  #retry: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.driver = options.driver;
    this.#options = options;
    this.#unregister = options.gate.onWaiting(() => this.#giveUpOne());
    this.#refill();
  }

  get warm(): number {
    return this.#warmLeases.length;
  }

  /** Takes a warm sandbox, or opens a new one when none is ready or `limits` differ from the pool's. Waits for a place in the gate. */
  async take({ limits = this.#options.limits, signal }: { limits?: SandboxLimits; signal?: AbortSignal }): Promise<TakenLease> {
    signal?.throwIfAborted();
    const { driver, snapshot, gate } = this.#options;
    const isPooled = haveSameSandboxLimits(limits, this.#options.limits);
    // All places are taken, but one of them by a sandbox that this pool is opening right now: wait for it.
    if (isPooled && this.warm === 0 && this.#filling !== null && gate.taken >= gate.places) await this.#fillNow();
    const warm = isPooled ? this.#warmLeases.shift() : undefined;
    const lease = warm ?? (await openInPlace({ driver, snapshot, limits, leave: await gate.enter(signal), signal }));
    this.#refill(REFILL_DELAY_MS);
    return { lease, start: warm === undefined ? lease.start : "pool" };
  }

  /** Resolves when the pool is as full as the gate allows. For benchmarks and tests. */
  async filled(): Promise<void> {
    this.#refill();
    await this.#fillNow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the pool is closing"));
    this.#unregister();
    clearTimeout(this.#retry);
    await this.#filling;
    await Promise.all(this.#warmLeases.splice(0).map((lease) => lease.close()));
  }

  /** Closes a warm sandbox when a caller waits for its place: one with other limits, or a self-test. */
  #giveUpOne(): boolean {
    const warm = this.#warmLeases.shift();
    void warm?.close();
    return warm !== undefined;
  }

  /** Runs in the background and never throws. A persistent problem becomes visible when a caller opens a sandbox itself. */
  #refill(delayMs = 0): void {
    if (this.#filling !== null || this.#closing.signal.aborted || this.warm >= this.#options.size) return;
    this.#skipDelay = new AbortController();
    const signal = AbortSignal.any([this.#skipDelay.signal, this.#closing.signal]);
    this.#filling = this.#fill(sleep(delayMs, undefined, { signal, ref: false }).catch(() => {})).finally(() => {
      this.#filling = null;
    });
  }

  /** Skips the delay before refilling and waits until the pool is filled. */
  async #fillNow(): Promise<void> {
    this.#skipDelay.abort();
    await this.#filling;
  }

  async #fill(delay: Promise<void>): Promise<void> {
    const { driver, snapshot, gate, limits, size } = this.#options;
    const { signal } = this.#closing;
    await delay;
    while (this.warm < size && !signal.aborted) {
      const leave = gate.tryEnter();
      if (leave === null) return;
      try {
        this.#keep(await warmUp(await openInPlace({ driver, snapshot, limits, leave, signal })));
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
    if (this.#closing.signal.aborted) {
      void lease.close();
      return;
    }
    this.#warmLeases.push(lease);
    const idleTimer = setTimeout(() => {
      if (this.#remove(lease)) void lease.close();
    }, this.#options.maxIdleMs ?? MAX_IDLE_MS).unref();
    void lease.died.then(() => {
      clearTimeout(idleTimer);
      this.#remove(lease);
    });
  }

  /** Removes a warm sandbox and refills the pool. Returns false when it was already taken. */
  #remove(lease: Lease): boolean {
    const at = this.#warmLeases.indexOf(lease);
    if (at === -1) return false;
    this.#warmLeases.splice(at, 1);
    this.#refill();
    return true;
  }
}

type PlacedOptions = Omit<OpenOptions, "networkPolicy"> & { readonly driver: SandboxDriver; readonly leave: () => void };

/** Opens a sandbox for a place in the gate. The sandbox holds the place until it dies; `leave` gives it back. */
export async function openInPlace({ driver, leave, ...options }: PlacedOptions): Promise<Lease> {
  try {
    const lease = await driver.open({ ...options, networkPolicy: "deny-all" });
    void lease.died.then(leave);
    return lease;
  } catch (error) {
    leave();
    throw error;
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

/** Whether a sandbox opened with one set of limits can be used with the other. */
function haveSameSandboxLimits(a: SandboxLimits, b: SandboxLimits): boolean {
  return a === b || (Object.keys(a) as (keyof SandboxLimits)[]).every((name) => limitsOfCells.has(name) || a[name] === b[name]);
}

/** The limits that the host applies to each cell. Any other limit, also a new one, applies from the moment a sandbox is opened. */
const limitsOfCells: ReadonlySet<keyof SandboxLimits> = new Set([
  "cellTimeoutMs",
  "leaseTimeoutMs",
  "codeBytes",
  "stdoutBytes",
  "stderrBytes",
  "resultBytes",
  "artifacts",
  "artifactBytes",
  "artifactDataBytes",
  "cellArtifactBytes",
  "turnArtifactBytes",
]);

/** Limits the number of sandboxes of a runtime, over all drivers and including warm ones. */
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
