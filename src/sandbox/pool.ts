import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, SandboxDriver, SandboxLimits, Snapshot } from "./contract.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { NoSandboxError } from "../errors/sluice-error.ts";

/** A lease as a caller gets it: `start` says where it came from. It is the caller's to close; it never comes back to the pool. */
export interface TakenLease {
  readonly lease: Lease;
  readonly start: "pool" | Lease["start"];
}

export interface SandboxPool extends AsyncDisposable {
  readonly driver: SandboxDriver;
  readonly warm: number;
  take(options: { limits?: SandboxLimits; signal?: AbortSignal | undefined }): Promise<TakenLease>;
  /** Resolves when the pool is as full as it can be now; for benches and tests. */
  filled(): Promise<void>;
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
/** Making a sandbox takes a core for half a second: whoever took one has it to himself for his first cell. */
const REFILL_DELAY_MS = 500;

/** Keeps sandboxes ready. A first call takes a warm one; the pool refills behind it. */
export function createSandboxPool({ driver, snapshot, limits, size, gate, maxIdleMs = 10 * 60_000 }: PoolOptions): SandboxPool {
  const waiting: Lease[] = [];
  const ending = new AbortController();
  let filling: Promise<void> | null = null;
  let hurry = new AbortController();
  let retry: NodeJS.Timeout | undefined;

  async function open(wanted: SandboxLimits, release: () => void, signal?: AbortSignal): Promise<Lease> {
    try {
      const lease = await driver.open({ snapshot, limits: wanted, networkPolicy: "deny-all", ...(signal && { signal }) });
      void lease.died.then(release);
      return lease;
    } catch (error) {
      release();
      throw error;
    }
  }

  async function take({ limits: wanted = limits, signal }: Parameters<SandboxPool["take"]>[0]): Promise<TakenLease> {
    signal?.throwIfAborted();
    const same = sameLimits(wanted, limits);
    if (same && waiting.length === 0 && filling !== null && gate.taken >= gate.places) await hasten(); // the last place is being made warm
    const warm = same ? waiting.shift() : undefined;
    if (warm !== undefined) {
      refill(REFILL_DELAY_MS);
      return { lease: warm, start: "pool" };
    }
    const release = await gate.enter(signal);
    const lease = await open(wanted, release, signal);
    refill(REFILL_DELAY_MS);
    return { lease, start: lease.start };
  }

  /** A warm sandbox is never in the way of somebody who waits for a place: a caller with other limits, or a self-test. */
  function giveUp(): boolean {
    const warm = waiting.shift();
    void warm?.close();
    return warm !== undefined;
  }

  /** Started behind a caller's back, so it never throws; what is wrong shows when a caller opens one itself. */
  function refill(delayMs = 0): void {
    if (filling !== null || ending.signal.aborted || waiting.length >= size) return;
    hurry = new AbortController();
    const patience = AbortSignal.any([hurry.signal, ending.signal]);
    filling = fill(sleep(delayMs, undefined, { signal: patience, ref: false }).catch(() => {})).finally(() => {
      filling = null;
    });
  }

  /** Somebody waits for the pool: no more patience. */
  async function hasten(): Promise<void> {
    hurry.abort();
    await filling;
  }

  async function fill(delay: Promise<void>): Promise<void> {
    await delay;
    while (waiting.length < size && !ending.signal.aborted) {
      const release = gate.tryEnter();
      if (release === null) return;
      try {
        keep(await warmUp(await open(limits, release, ending.signal)));
      } catch {
        retry ??= setTimeout(() => {
          retry = undefined;
          refill();
        }, RETRY_MS).unref();
        return;
      }
    }
  }

  function keep(lease: Lease): void {
    if (ending.signal.aborted) {
      void lease.close();
      return;
    }
    waiting.push(lease);
    const drop = (): void => {
      const at = waiting.indexOf(lease);
      if (at >= 0) waiting.splice(at, 1);
    };
    const old = setTimeout(() => {
      if (waiting.includes(lease)) {
        drop();
        void lease.close();
        refill();
      }
    }, maxIdleMs).unref();
    void lease.died.then(() => {
      clearTimeout(old);
      if (waiting.includes(lease)) {
        drop();
        refill();
      }
    });
  }

  async function dispose(): Promise<void> {
    ending.abort(new Error("the pool is closing"));
    stopGivingUp();
    clearTimeout(retry);
    await filling;
    await Promise.all(waiting.splice(0).map((lease) => lease.close()));
  }

  const stopGivingUp = gate.onWaiting(giveUp);
  refill();
  return {
    driver,
    get warm() {
      return waiting.length;
    },
    take,
    filled: async () => {
      refill();
      await hasten();
    },
    [Symbol.asyncDispose]: dispose,
  };
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
