import { UsageError } from "../../errors/sluice-error.ts";
import type { SandboxLimits } from "../../sandbox/contract.ts";
import { withLimits } from "../../sandbox/limits.ts";
import type { TakenLease } from "../../sandbox/pool.ts";
import type { Engine, EngineOutcome, ExecuteLimits, Script } from "../engine.ts";
import { runScript } from "./run-script.ts";

export interface CpythonEngineOptions {
  /** A sandbox that has run nothing, to be closed by the engine: `SandboxPool.take` of the runtime, or of a pool with the limits of `toSandboxLimits`. */
  readonly take: (options: { limits: SandboxLimits; signal?: AbortSignal | undefined }) => Promise<TakenLease>;
}

/** Each script gets a sandbox of its own, with nothing bound, that is ended with it. */
export function createCpythonEngine({ take }: CpythonEngineOptions): Engine {
  const ending = new AbortController();
  /** What has to be over before the engine is. */
  const under = new Set<Promise<unknown>>();

  function track<T>(work: Promise<T>): Promise<T> {
    under.add(work);
    work.then(
      () => under.delete(work),
      () => under.delete(work),
    );
    return work;
  }

  async function run(script: Script): Promise<EngineOutcome> {
    const bytes = Buffer.byteLength(script.code, "utf8");
    if (bytes > script.limits.codeBytes)
      return refused({ kind: "limit", limit: "codeBytes", allowed: script.limits.codeBytes, seen: bytes });
    const signal = script.signal === undefined ? ending.signal : AbortSignal.any([script.signal, ending.signal]);
    signal.throwIfAborted();
    return await track(runInNewSandbox({ ...script, signal }));
  }

  async function runInNewSandbox(script: Script): Promise<EngineOutcome> {
    const { lease } = await take({ limits: toSandboxLimits(script.limits), signal: script.signal });
    try {
      return await runScript({ lease, script });
    } finally {
      void track(lease.close()); // the answer does not wait for what is left to clean up
    }
  }

  return {
    name: "cpython",
    run,
    async [Symbol.asyncDispose]() {
      ending.abort(new UsageError({ code: "ENGINE_CLOSED", message: "The engine is closed." }));
      while (under.size > 0) await Promise.allSettled(under);
    },
  };
}

const MB = 1024 * 1024;
/** What the worker itself may need beside a script: its pages of the science stack, and copies of what is on its way. */
const WORKER_BYTES = 256 * MB;

/** The script's own process is held to `memoryBytes` by the worker; this is the kernel's limit, for all of the sandbox. */
function toSandboxLimits({ memoryBytes, totalMs, codeBytes, resultBytes, printBytes }: ExecuteLimits): SandboxLimits {
  return withLimits({
    cellTimeoutMs: totalMs,
    leaseTimeoutMs: totalMs,
    memoryBytes: memoryBytes + WORKER_BYTES,
    processes: 32,
    scratchBytes: 64 * MB,
    openFiles: 256,
    codeBytes,
    stdoutBytes: printBytes,
    stderrBytes: 0,
    resultBytes,
    artifacts: 0,
    inputBytes: 0,
  });
}

function refused(end: EngineOutcome["end"]): EngineOutcome {
  return { end, prints: "", printsOmittedBytes: 0, unawaited: [], toolCalls: 0, executionMs: 0 };
}
