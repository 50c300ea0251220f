import type { ExecuteLimits } from "./engine.ts";

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
  /** Of the sandbox since the script began. Without it, only the time that passes counts. */
  readonly cpuMs?: () => Promise<number>;
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
  const poll = cpuMs === undefined ? undefined : setInterval(() => void lookAtCpu(cpuMs), Math.min(CPU_POLL_MS, limits.executionMs));
  const passed = (): number => counted + (since === null ? 0 : performance.now() - since);

  function over(limit: "executionMs" | "totalMs"): void {
    if (stopped) return;
    stop();
    onOver(limit);
  }

  async function lookAtCpu(read: () => Promise<number>): Promise<void> {
    cpu = Math.max(cpu, await read().catch(() => cpu)); // a sandbox that is gone is reported elsewhere
    if (cpu > limits.executionMs) over("executionMs");
  }

  /** The timer is left alone when the script waits, and set again only when it has run out too early: a script may wait a thousand times a second. */
  function arm(): void {
    own ??= setTimeout(look, Math.max(0, limits.executionMs - passed()));
  }

  function look(): void {
    own = undefined;
    if (since === null) return;
    if (passed() >= limits.executionMs) over("executionMs");
    else arm();
  }

  function pause(): void {
    counted = passed();
    since = null;
  }

  function resume(): void {
    if (since !== null || stopped) return;
    since = performance.now();
    arm();
  }

  function stop(): void {
    pause();
    stopped = true;
    clearTimeout(own);
    clearTimeout(total);
    clearInterval(poll);
  }

  arm();
  return { pause, resume, executionMs: () => Math.max(passed(), cpu), [Symbol.dispose]: stop };
}
