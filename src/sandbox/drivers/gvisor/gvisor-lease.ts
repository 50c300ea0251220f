import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { SandboxLostError } from "../../../errors/sluice-error.ts";
import { signalName } from "../../../processes.ts";
import { createLeaseCgroup, type LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { Death, DriverName, Frame, FrameChannel, Lease, SandboxLimits, Snapshot, Usage } from "../../contract.ts";
import { createFrameChannel } from "../../frame-channel.ts";
import type { LeaseDirectory, RunDirectory } from "../../run-directory.ts";
import type { MemoryImage } from "./memory-image.ts";
import { toOciSpec } from "./oci-spec.ts";
import { type ProcessMeter, startProcessMeter } from "./process-meter.ts";
import type { ProcessExit, ProcessStarter } from "./process-starter.ts";
import { type RunscProcess, startRunsc } from "./runsc-process.ts";

/**
 * Memory of gVisor itself: the sentry's Go heap, runsc and the gofer. Measured: 30 MB idle, 45 MB with 300 threads.
 * The rest is for page tables and many open files.
 */
const SENTRY_ALLOWANCE_BYTES = 128 * 1024 * 1024;

export interface StartOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  /** The runsc command with its prefix and flags. */
  readonly runsc: readonly string[];
  /** Null starts the sandbox cold: it imports the stack itself. */
  readonly image: MemoryImage | null;
  readonly runDirectory: RunDirectory;
  readonly starter: ProcessStarter;
  readonly signal: AbortSignal;
}

export interface StartedSandbox {
  readonly directory: LeaseDirectory;
  readonly cgroup: LeaseCgroup | null;
  readonly process: RunscProcess;
  readonly channel: FrameChannel;
}

/** Starts runsc. A cold start also waits until the worker has imported the stack. Leaves nothing behind on failure. */
export async function startSandbox(options: StartOptions): Promise<StartedSandbox> {
  const { snapshot, limits, runsc, image, runDirectory, starter, signal } = options;
  signal.throwIfAborted();
  const directory = await runDirectory.newLeaseDirectory();
  const { id } = directory;
  let cgroup: LeaseCgroup | null = null;
  let process: RunscProcess | null = null;
  try {
    const { cgroups, runscState: state } = runDirectory;
    const spec = toOciSpec({ rootfs: snapshot.rootfs, scratchBytes: limits.scratchBytes });
    const [memoryBytes, processes] = [limits.memoryBytes + SENTRY_ALLOWANCE_BYTES, toHostProcesses(limits)];
    [cgroup] = await Promise.all([
      cgroups.available ? createLeaseCgroup({ cgroups, name: id, memoryBytes, processes, killTogether: true }) : null,
      writeFile(join(directory.path, "config.json"), JSON.stringify(spec)),
    ]);
    const command = [...(image === null ? ["run"] : ["restore", `--image-path=${image.path}`]), `--bundle=${directory.path}`];
    process = await startRunsc({ runsc, state, command, containerId: id, cgroup, starter });
    const channel = createFrameChannel({ readable: process.channel, writable: process.channel });
    if (image === null) await expectFrame("imported", { channel, process }, signal);
    return { directory, cgroup, process, channel };
  } catch (error) {
    await discardSandbox({ directory, cgroup, process });
    throw error;
  }
}

/** RLIMIT_NPROC limits the processes inside. On the host, each of them needs a stub and a few threads in addition to the sentry's own. */
function toHostProcesses({ processes }: SandboxLimits): number {
  return 256 + 4 * processes;
}

/** Sends the lease's rlimits to the worker, which sets them before any user code runs, and waits for its answer. */
export async function greet({ channel, process }: StartedSandbox, limits: SandboxLimits, signal: AbortSignal): Promise<void> {
  const nonce = randomBytes(16).toString("hex");
  const rlimits = { NOFILE: limits.openFiles, NPROC: limits.processes, CORE: 0, memory: limits.memoryBytes };
  await channel.send({ type: "hello", nonce, spare: false, rlimits }).catch(() => {}); // expectFrame reports a dead worker
  const frame = await expectFrame("ready", { channel, process }, signal);
  if (frame.header["nonce"] !== nonce) throw new Error("The worker answered with a wrong nonce.");
  await process.preferAsMemoryVictim();
}

type Discarded = Pick<StartedSandbox, "directory" | "cgroup"> & { readonly process: RunscProcess | null };

/** Kills the sandbox and removes its files and its cgroup. */
export async function discardSandbox({ directory, cgroup, process }: Discarded): Promise<void> {
  await process?.kill();
  await process?.removeState();
  await cgroup?.remove();
  await directory.remove();
}

/** Waits for a frame of this type. Throws when the worker sends another frame or ends, and on abort. */
async function expectFrame(
  type: string,
  { channel, process }: Pick<StartedSandbox, "channel" | "process">,
  signal: AbortSignal,
): Promise<Frame> {
  const ended = process.exited.then(({ exitCode, signal: killedBy, stderr }) => {
    throw startFailed(`runsc ended (${killedBy ?? `exit status ${exitCode}`}) before the worker answered`, stderr);
  });
  const frame = await orAbort(Promise.race([receiveOrWait(channel), ended]), signal);
  if (frame.header.type === type) return frame;
  await process.kill();
  const { stderr } = await process.exited;
  const isLost = frame.header.type === "lost";
  throw startFailed(isLost ? String(frame.header["detail"]) : `the worker sent "${frame.header.type}" instead of "${type}"`, stderr);
}

/** When the channel ends, waits two seconds before it rejects: the exit of runsc follows, and its error says more. */
async function receiveOrWait(channel: FrameChannel): Promise<Frame> {
  const frame = await channel.receive();
  if (frame !== null) return frame;
  return new Promise<Frame>((_, reject) => {
    setTimeout(() => reject(startFailed("the worker closed its channel", "")), 2_000).unref();
  });
}

function startFailed(reason: string, stderr: string): SandboxLostError {
  const lastOutput = stderr.trim().slice(-1_500);
  return new SandboxLostError({
    code: "SANDBOX_START",
    message: `The gVisor sandbox did not start: ${reason}.${toStderrSentence(lastOutput)}`,
    details: { stderr: lastOutput },
  });
}

function toStderrSentence(output: string): string {
  return output === "" ? "" : ` Its last output was: ${output}`;
}

export interface GvisorLeaseOptions extends StartedSandbox {
  readonly driver: DriverName;
  readonly start: Lease["start"];
  readonly limits: SandboxLimits;
  /** Takes work that continues after the caller's call. The driver waits for it when it is closed. */
  readonly runInBackground: (work: Promise<void>) => void;
}

const HEALTH_CHECK_MS = 250;

/** The handle on a sandbox that has answered `hello`: measures it, watches that it does not hang, and cleans up after its death. */
export class GvisorLease implements Lease {
  readonly id: string;
  readonly driver: DriverName;
  readonly start: Lease["start"];
  readonly needsWarmUp: boolean;
  readonly channel: FrameChannel;
  readonly died: Promise<Death>;
  readonly #options: GvisorLeaseOptions;
  readonly #meter: LeaseCgroup | ProcessMeter;
  #lastUsage: Usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  #wasOverLimit = false;
  #closing: Promise<void> | null = null;

  constructor(options: GvisorLeaseOptions) {
    this.id = options.directory.id;
    this.driver = options.driver;
    this.start = options.start;
    this.needsWarmUp = options.start === "restored"; // the first use of a restored page causes a page fault
    this.channel = options.channel;
    this.#options = options;
    this.#meter = options.cgroup ?? this.#startMeter();
    this.died = this.#settle();
    const healthCheck = setInterval(() => void this.#killIfBroken(), HEALTH_CHECK_MS);
    healthCheck.unref();
    void this.died.then(() => {
      clearInterval(healthCheck);
      options.channel.close();
      options.runInBackground(this.#remove());
    });
  }

  async usage(): Promise<Usage> {
    if (this.#closing === null) this.#lastUsage = await this.#meter.usage().catch(() => this.#lastUsage);
    return this.#lastUsage;
  }

  async resetPeak(): Promise<Usage> {
    const before = await this.usage();
    await this.#meter.resetPeak();
    return before;
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#lastUsage = await this.#meter.usage().catch(() => this.#lastUsage); // the last measurement
    await this.#options.process.kill();
    await this.died;
  }

  /** Limits memory where there is no cgroup. */
  #startMeter(): ProcessMeter {
    const { process, limits } = this.#options;
    return startProcessMeter({
      measureMemory: () => process.measureMemory(),
      listProcesses: () => process.listProcesses(),
      memoryBytes: limits.memoryBytes + SENTRY_ALLOWANCE_BYTES,
      onOverLimit: () => {
        this.#wasOverLimit = true;
        void process.kill();
      },
    });
  }

  /** The sandbox hangs when the kernel killed a stub instead of the sentry, or when the gofer is dead. The check reads only a few small files. */
  async #killIfBroken(): Promise<void> {
    const { process, cgroup } = this.#options;
    if (this.#closing !== null) return;
    if (!process.isIntact() || (cgroup !== null && (await this.usage()).memoryKills > 0)) await process.kill();
  }

  async #settle(): Promise<Death> {
    const { process, limits } = this.#options;
    const { exitCode, signal, stderr } = await process.exited;
    const closedByHost = this.#closing !== null;
    const { memoryKills } = closedByHost ? this.#lastUsage : await this.usage();
    await process.kill(); // runsc has exited; wait for its children
    if (memoryKills > 0 || this.#wasOverLimit)
      return { cause: "out_of_memory", detail: `The sandbox went over ${limits.memoryBytes} bytes of memory and was killed.` };
    if (closedByHost) return { cause: "closed", detail: "The host closed the sandbox." };
    return toDeath({ exitCode, signal, stderr });
  }

  async #remove(): Promise<void> {
    const { process, cgroup, directory } = this.#options;
    if ("stop" in this.#meter) this.#meter.stop();
    await process.removeState();
    await cgroup?.remove();
    await directory.remove();
  }
}

/** runsc exits with the worker's exit status, or with 128 plus the number of the signal that killed the worker. */
function toDeath({ exitCode, signal, stderr }: ProcessExit): Death {
  const output = toStderrSentence(stderr.trim().slice(-500));
  if (signal !== null) return { cause: "killed", signal, detail: `runsc was killed by ${signal}.${output}` };
  if (exitCode !== null && exitCode > 128) {
    const name = signalName(exitCode - 128) ?? `signal ${exitCode - 128}`;
    return { cause: "killed", exitCode, signal: name, detail: `The worker or its sandbox was killed by ${name}.${output}` };
  }
  return { cause: "exited", exitCode: exitCode ?? undefined, detail: `The worker ended with exit status ${exitCode}.${output}` };
}
