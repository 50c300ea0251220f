import type { ExecuteLimits } from "./engine.ts";

/**
 * Enforces the two time limits of a script, measured by the host. The total is wall time. The computing time is the wall time during which no tool call
 * is pending, or the CPU time of the sandbox if that is more: a script that computes while a slow tool runs is charged for it.
 */
export interface ScriptClock extends Disposable {
  /** Stops counting computing time while the script waits for a tool. */
  pause(): void;
  resume(): void;
  /** Computing time so far. */
  executionMs(): number;
}

export interface ScriptClockOptions {
  readonly limits: Pick<ExecuteLimits, "executionMs" | "totalMs">;
  /** CPU time of the sandbox since the script started. Without it, only wall time counts. */
  readonly cpuMs?: () => Promise<number>;
  /** Called once, when a limit is reached. */
  readonly onOver: (limit: "executionMs" | "totalMs") => void;
}

const CPU_POLL_MS = 500;

export function createScriptClock({ limits, cpuMs, onOver }: ScriptClockOptions): ScriptClock {
  let countedMs = 0;
  /** Null while paused. */
  let runningSince: number | null = performance.now();
  let lastCpuMs = 0;
  let executionTimer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const totalTimer = setTimeout(() => end("totalMs"), limits.totalMs);
  const cpuTimer = cpuMs === undefined ? undefined : setInterval(() => void checkCpu(cpuMs), Math.min(CPU_POLL_MS, limits.executionMs));
  const elapsedMs = (): number => countedMs + (runningSince === null ? 0 : performance.now() - runningSince);

  function end(limit: "executionMs" | "totalMs"): void {
    if (isStopped) return;
    stop();
    onOver(limit);
  }

  async function checkCpu(readCpuMs: () => Promise<number>): Promise<void> {
    lastCpuMs = Math.max(lastCpuMs, await readCpuMs().catch(() => lastCpuMs)); // a dead sandbox is reported elsewhere
    if (lastCpuMs > limits.executionMs) end("executionMs");
  }

  /** A pause does not clear the timer; it is set again only if it fires too early. A script may pause a thousand times a second. */
  function startTimer(): void {
    executionTimer ??= setTimeout(onTimer, Math.max(0, limits.executionMs - elapsedMs()));
  }

  function onTimer(): void {
    executionTimer = undefined;
    if (runningSince === null) return;
    if (elapsedMs() >= limits.executionMs) end("executionMs");
    else startTimer();
  }

  function pause(): void {
    countedMs = elapsedMs();
    runningSince = null;
  }

  function resume(): void {
    if (runningSince !== null || isStopped) return;
    runningSince = performance.now();
    startTimer();
  }

  function stop(): void {
    pause();
    isStopped = true;
    clearTimeout(executionTimer);
    clearTimeout(totalTimer);
    clearInterval(cpuTimer);
  }

  startTimer();
  return { pause, resume, executionMs: () => Math.max(elapsedMs(), lastCpuMs), [Symbol.dispose]: stop };
}
