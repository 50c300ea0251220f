import type { ExecuteLimits } from "../contract.ts";

/**
 * Two budgets. The total one is wall time. The script's own time is what passes while no tool is being waited for, or the processor time of
 * the sandbox where that is more: a script that computes beside a slow tool pays for it, one that only waits does not. Both are seen from the host.
 */
export interface ScriptClock extends Disposable {
  /** A tool is being waited for; the script's own time stands still until it is not. */
  pause(): void;
  resume(): void;
  /** So far. */
  executionMs(): number;
}

export interface ScriptClockOptions {
  readonly limits: Pick<ExecuteLimits, "executionMs" | "totalMs">;
  /** Of the sandbox since the script began. */
  readonly cpuMs: () => Promise<number>;
  /** Called once, when a budget is used up. */
  readonly onOver: (limit: "executionMs" | "totalMs") => void;
}

const CPU_POLL_MS = 500;

export function createScriptClock({ limits, cpuMs, onOver }: ScriptClockOptions): ScriptClock {
  let counted = 0;
  let since: number | null = performance.now();
  let cpu = 0;
  let own: NodeJS.Timeout | undefined;
  let stopped = false;
  const total = setTimeout(() => over("totalMs"), limits.totalMs);
  const poll = setInterval(() => void lookAtCpu(), Math.min(CPU_POLL_MS, limits.executionMs));

  function over(limit: "executionMs" | "totalMs"): void {
    if (stopped) return;
    stop();
    onOver(limit);
  }

  async function lookAtCpu(): Promise<void> {
    cpu = Math.max(cpu, await cpuMs().catch(() => cpu)); // a sandbox that is gone is told of elsewhere
    if (cpu > limits.executionMs) over("executionMs");
  }

  function arm(): void {
    own = setTimeout(() => over("executionMs"), Math.max(0, limits.executionMs - counted));
  }

  function pause(): void {
    if (since === null) return;
    counted += performance.now() - since;
    since = null;
    clearTimeout(own);
  }

  function resume(): void {
    if (since !== null || stopped) return;
    since = performance.now();
    arm();
  }

  function stop(): void {
    pause();
    stopped = true;
    clearTimeout(total);
    clearInterval(poll);
  }

  arm();
  return {
    pause,
    resume,
    executionMs: () => Math.max(counted + (since === null ? 0 : performance.now() - since), cpu),
    [Symbol.dispose]: stop,
  };
}
