import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { signalName } from "../../../processes/last-words.ts";
import { createLeaseCgroup, type LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { Death, DriverName, Frame, FrameChannel, Lease, SandboxLimits, Snapshot, Usage } from "../../contract.ts";
import { type ProcessMeter, startProcessMeter } from "../../process-usage.ts";
import type { LeaseDirectory, RunDirectory } from "../../run-directory.ts";
import { type RunscProcess, startRunsc } from "./runsc-process.ts";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { SandboxLostError } from "../../../errors/sluice-error.ts";
import { createFrameChannel } from "../../frame-channel.ts";
import type { MemoryImage } from "./memory-image.ts";
import { toOciSpec } from "./oci-spec.ts";

/** Go heap of the sentry, runsc itself and the gofer: measured 30 MB idle, 45 MB with 300 threads; the rest is room for page tables and many open files. */
const sentryAllowanceBytes: number = 128 * 1024 * 1024;

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
    needsWarmUp: start === "restored", // a restored page is faulted in when it is first used
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
    const name = signalName(exitCode - 128) ?? `signal ${exitCode - 128}`;
    return { cause: "killed", exitCode, signal: name, detail: `The worker, or the sandbox around it, was ended by ${name}.${said}` };
  }
  return { cause: "exited", ...(exitCode === null ? {} : { exitCode }), detail: `The worker ended with exit status ${exitCode}.${said}` };
}

export interface StartOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  /** The command that is runsc, with what goes before it. */
  readonly runsc: readonly string[];
  readonly flags: readonly string[];
  /** Null: it is started cold, and imports the stack itself. */
  readonly image: MemoryImage | null;
  readonly runDirectory: RunDirectory;
  readonly signal: AbortSignal;
}

export interface StartedSandbox extends Remains {
  readonly process: RunscProcess;
  readonly channel: FrameChannel;
}

interface Remains {
  readonly directory: LeaseDirectory;
  readonly cgroup: LeaseCgroup | null;
  readonly process: RunscProcess | null;
}

/** Starts runsc and waits until the worker speaks: `imported` when cold, at once when restored. On failure nothing is left. */
export async function startSandbox({ snapshot, limits, runsc, flags, image, runDirectory, signal }: StartOptions): Promise<StartedSandbox> {
  signal.throwIfAborted();
  const directory = await runDirectory.newLeaseDirectory();
  let cgroup: LeaseCgroup | null = null;
  let process: RunscProcess | null = null;
  try {
    const { cgroups, runscState: state } = runDirectory;
    const spec = toOciSpec({ rootfs: snapshot.rootfs, scratchBytes: limits.scratchBytes });
    [cgroup] = await Promise.all([
      cgroups.available
        ? createLeaseCgroup({
            cgroups,
            name: directory.id,
            memoryBytes: limits.memoryBytes + sentryAllowanceBytes,
            processes: toHostProcesses(limits),
            dieTogether: true,
          })
        : null,
      writeFile(join(directory.path, "config.json"), JSON.stringify(spec)),
    ]);
    const command = [...(image === null ? ["run"] : ["restore", `--image-path=${image.path}`]), `--bundle=${directory.path}`];
    process = await startRunsc({ runsc, state, flags, command, containerId: directory.id, cgroup });
    const channel = createFrameChannel({ readable: process.stdout, writable: process.stdin });
    if (image === null) await expectFrame("imported", { channel, process }, signal);
    return { directory, cgroup, process, channel };
  } catch (error) {
    await discardSandbox({ directory, cgroup, process });
    throw error;
  }
}

/** Tells the worker the rlimits of this lease, which it sets before any user code runs, and waits for its answer. */
export async function greet({ channel, process }: StartedSandbox, limits: SandboxLimits, signal: AbortSignal): Promise<void> {
  const nonce = randomBytes(16).toString("hex");
  const rlimits = { NOFILE: limits.openFiles, NPROC: limits.processes, CORE: 0, memory: limits.memoryBytes };
  await channel.send({ type: "hello", nonce, spare: false, rlimits }).catch(() => {}); // a worker that is gone is told by what follows
  const frame = await expectFrame("ready", { channel, process }, signal);
  if (frame.header["nonce"] !== nonce) throw new Error("The worker answered with another nonce than it was given.");
  await process.preferAsMemoryVictim();
}

export async function discardSandbox({ directory, cgroup, process }: Remains): Promise<void> {
  await process?.kill();
  await process?.removeState();
  await cgroup?.remove();
  await directory.remove();
}

/** Processes inside are limited by RLIMIT_NPROC; outside, each costs a stub and a few threads beside those of the sentry. */
function toHostProcesses({ processes }: SandboxLimits): number {
  return 256 + 4 * processes;
}

/** Waits for a frame of this type; anything else, an end or an abort is an error that says what came instead. */
async function expectFrame(
  type: string,
  { channel, process }: Pick<StartedSandbox, "channel" | "process">,
  signal: AbortSignal,
): Promise<Frame> {
  const ended = process.exited.then(async ({ exitCode, signal: by }) => {
    // The last words on standard error arrive after the exit.
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw startFailed(`runsc ended (${by === null ? `exit status ${exitCode}` : by}) before the worker answered`, process.stderr());
  });
  const frame = await orAbort(Promise.race([receiveOrWait(channel), ended]), signal);
  if (frame.header.type === "lost") throw startFailed(String(frame.header["detail"]), process.stderr());
  if (frame.header.type !== type) throw startFailed(`the worker sent "${frame.header.type}" where "${type}" was due`, process.stderr());
  return frame;
}

/** The end of the channel says less than runsc's exit, which follows it: wait for that. */
async function receiveOrWait(channel: FrameChannel): Promise<Frame> {
  const frame = await channel.receive();
  if (frame !== null) return frame;
  return new Promise<Frame>((_, reject) => {
    setTimeout(() => reject(startFailed("the worker closed its channel", "")), 2_000).unref();
  });
}

function startFailed(what: string, stderr: string): SandboxLostError {
  const words = stderr.trim().slice(-1_500);
  return new SandboxLostError({
    code: "SANDBOX_START",
    message: `The gVisor sandbox did not start: ${what}.${words === "" ? "" : ` It said: ${words}`}`,
    details: { stderr: words },
  });
}
