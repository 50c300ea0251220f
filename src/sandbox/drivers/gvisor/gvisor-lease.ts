import { constants } from "node:os";
import type { LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { Death, DriverName, FrameChannel, Lease, SandboxLimits, Usage } from "../../contract.ts";
import { startProcessMeter, type ProcessMeter } from "../../process-usage.ts";
import type { LeaseDirectory } from "../../run-directory.ts";
import type { RunscProcess } from "./runsc-process.ts";

/** Go heap of the sentry, runsc itself and the gofer: measured 30 MB idle, 45 MB with 300 threads; the rest is room for page tables and many open files. */
export const sentryAllowanceBytes: number = 128 * 1024 * 1024;

export interface GvisorLeaseOptions {
  readonly driver: DriverName;
  readonly start: Lease["start"];
  readonly limits: SandboxLimits;
  readonly directory: LeaseDirectory;
  readonly cgroup: LeaseCgroup | null;
  readonly process: RunscProcess;
  readonly channel: FrameChannel;
  /** Work that goes on behind the caller; the driver awaits it when it is disposed of. */
  readonly behind: (work: Promise<void>) => void;
}

export function createGvisorLease({ driver, start, limits, directory, cgroup, process, channel, behind }: GvisorLeaseOptions): Lease {
  let memoryKilled = false;
  let closing: Promise<void> | null = null;
  const meter: Meter = cgroup ?? watchProcesses();
  let lastUsage: Usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };

  function watchProcesses(): ProcessMeter {
    return startProcessMeter({
      measureMemory: () => process.measureMemory(),
      listProcesses: () => process.listProcesses(),
      memoryBytes: limits.memoryBytes + sentryAllowanceBytes,
      onOverLimit: () => {
        memoryKilled = true;
        void process.kill();
      },
    });
  }

  async function usage(): Promise<Usage> {
    if (closing === null) lastUsage = await meter.usage().catch(() => lastUsage);
    return lastUsage;
  }

  async function settle(): Promise<Death> {
    const { exitCode, signal } = await process.exited;
    const ours = closing !== null;
    const { memoryKills } = ours ? lastUsage : await usage();
    await process.kill(); // runsc is gone; wait until its children are
    if (memoryKills > 0 || memoryKilled)
      return { cause: "out_of_memory", detail: `The sandbox went over ${limits.memoryBytes} bytes of memory and was killed.` };
    if (ours) return { cause: "closed", detail: "The host closed the sandbox." };
    return toDeath({ exitCode, signal, stderr: process.stderr() });
  }
  const died = settle();
  void died.then(() => {
    channel.close();
    behind(remove());
  });

  async function remove(): Promise<void> {
    meter.stop?.();
    await process.removeState();
    await cgroup?.remove();
    await directory.remove();
  }

  async function close(): Promise<void> {
    lastUsage = await meter.usage().catch(() => lastUsage); // the last there will be
    await process.kill();
    await died;
  }

  /** A stub that the kernel took instead of the sentry, or a gofer that is gone, leaves a sandbox that hangs. Cheap: a few small files. */
  const watch = setInterval(() => void killIfBroken(), 250);
  watch.unref();
  void died.then(() => clearInterval(watch));
  async function killIfBroken(): Promise<void> {
    if (closing !== null) return;
    if (!process.isWhole() || (cgroup !== null && (await usage()).memoryKills > 0)) await process.kill();
  }

  return {
    id: directory.id,
    driver,
    start,
    openedAt: Date.now(),
    channel,
    died,
    usage,
    async resetPeak() {
      const before = await usage();
      await meter.resetPeak();
      return before;
    },
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  };
}

interface Meter {
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  stop?(): void;
}

/** runsc gives the exit status of the worker, 128 and the number of a signal that ended it. */
function toDeath({ exitCode, signal, stderr }: { exitCode: number | null; signal: string | null; stderr: string }): Death {
  const words = stderr.trim().slice(-500);
  const said = words === "" ? "" : ` It said: ${words}`;
  if (signal !== null) return { cause: "killed", signal, detail: `runsc was ended by ${signal}.${said}` };
  if (exitCode !== null && exitCode > 128) {
    const name = signalName(exitCode - 128);
    return { cause: "killed", exitCode, signal: name, detail: `The worker, or the sandbox around it, was ended by ${name}.${said}` };
  }
  return { cause: "exited", ...(exitCode === null ? {} : { exitCode }), detail: `The worker ended with exit status ${exitCode}.${said}` };
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;
}
