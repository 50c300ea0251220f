import { UsageError } from "../../errors/sluice-error.ts";
import type { SandboxLimits } from "../../sandbox/contract.ts";
import { withLimits } from "../../sandbox/limits.ts";
import type { TakenLease } from "../../sandbox/pool.ts";
import type { Engine, EngineOutcome, ExecuteLimits, Script } from "../engine.ts";
import { runScript } from "./run-script.ts";

export interface CpythonEngineOptions {
  /** Provides a fresh sandbox (`SandboxPool.take`). The engine closes it. */
  readonly take: (options: { limits: SandboxLimits; signal?: AbortSignal | undefined }) => Promise<TakenLease>;
}

/** The engine that runs each script in CPython, in a fresh sandbox without inputs that is closed afterwards. */
export function createCpythonEngine({ take }: CpythonEngineOptions): Engine {
  const closing = new AbortController();
  /** Work that must end before the engine is closed. */
  const pending = new Set<Promise<unknown>>();

  function track<T>(work: Promise<T>): Promise<T> {
    pending.add(work);
    const forget = (): boolean => pending.delete(work);
    work.then(forget, forget);
    return work;
  }

  async function run(script: Script): Promise<EngineOutcome> {
    const bytes = Buffer.byteLength(script.code, "utf8");
    if (bytes > script.limits.codeBytes)
      return notRun({ kind: "limit", limit: "codeBytes", allowed: script.limits.codeBytes, seen: bytes });
    const signal = script.signal === undefined ? closing.signal : AbortSignal.any([script.signal, closing.signal]);
    signal.throwIfAborted();
    return await track(runInNewSandbox({ ...script, signal }));
  }

  async function runInNewSandbox(script: Script): Promise<EngineOutcome> {
    const { lease } = await take({ limits: toSandboxLimits(script.limits), signal: script.signal });
    try {
      return await runScript({ lease, script });
    } finally {
      void track(lease.close()); // the outcome does not wait for the cleanup
    }
  }

  return {
    name: "cpython",
    run,
    async [Symbol.asyncDispose]() {
      closing.abort(new UsageError({ code: "ENGINE_CLOSED", message: "The engine is closed." }));
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}

const MB = 1024 * 1024;
/** Memory of the worker besides that of the script: the loaded packages, and copies of data in transit. */
const WORKER_BYTES = 256 * MB;

/** The worker limits the script's process to `memoryBytes`. The limit here is that of the whole sandbox, which the kernel enforces. */
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

function notRun(end: EngineOutcome["end"]): EngineOutcome {
  return { end, prints: "", printsOmittedBytes: 0, unawaited: [], toolCalls: 0, executionMs: 0 };
}
