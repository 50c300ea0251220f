import { execFile } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { promisify } from "node:util";
import { z } from "zod";
import { killAll, listProcessTree, readStartTime } from "../../../processes.ts";
import { parseJson } from "../../../text/json.ts";
import type { LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import { readPrivateBytes } from "./process-meter.ts";
import type { ProcessExit, ProcessStarter, StartedProcess } from "./process-starter.ts";

/**
 * The flags of every runsc command.
 * - `--directfs=false`: the gofer opens files, so the sandbox process can run as nobody without capabilities. This does not slow down restore.
 *   Without root, runsc cannot switch to nobody, and the sandbox process opens the snapshot's files itself.
 * - `--overlay2=none`: the root is read-only, so it needs no overlay and no file store beside it.
 * - `--ignore-cgroups`: we put runsc into our own cgroup before it starts.
 * - `--file-access=exclusive`: a snapshot never changes while it is in use.
 */
export function toRunscFlags({ rootless }: { rootless: boolean }): string[] {
  return [
    "--network=none",
    "--host-uds=none",
    "--host-fifo=none",
    "--platform=systrap",
    "--oci-seccomp",
    "--overlay2=none",
    "--file-access=exclusive",
    `--directfs=${rootless}`,
    "--ignore-cgroups",
  ];
}

/**
 * The commands to put before runsc. Without root, runsc runs as root of a new user namespace; runsc's own `--rootless` does the same but cannot
 * restore. `setpriv --pdeathsig` comes last, because entering a namespace clears the signal. Both programs belong to util-linux, which every Debian has.
 */
export function toRunscPrefix({ rootless }: { rootless: boolean }): string[] {
  const setpriv = "/usr/bin/setpriv";
  return [...(rootless ? userNamespaceCommand : []), ...(existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL"] : [])];
}

/** Runs the command that follows as root of a new user namespace that contains only the current user. */
export const userNamespaceCommand: readonly string[] = ["/usr/bin/unshare", "--user", "--map-root-user"];

export interface RunscOptions {
  /** The runsc command with its prefix and flags. */
  readonly runsc: readonly string[];
  /** Directory where runsc keeps the state of its containers. */
  readonly state: string;
  readonly containerId: string;
  readonly cgroup: LeaseCgroup | null;
}

/** Starts `runsc run` or `runsc restore` in the foreground, inside the lease's cgroup if there is one. */
export async function startRunsc({ command, starter, ...options }: StartRunscOptions): Promise<RunscProcess> {
  const { runsc, state, containerId, cgroup } = options;
  const words = [...runsc, `--root=${state}`, ...command, containerId];
  const process = await starter.start({ command: words, joinPaths: cgroup?.joinPaths ?? [] });
  return new RunscProcess({ ...options, process });
}

interface StartRunscOptions extends RunscOptions {
  readonly command: readonly string[];
  readonly starter: ProcessStarter;
}

interface StartedRunsc extends RunscOptions {
  readonly process: StartedProcess;
}

/** The fields that we use of runsc's state file. */
const stateSchema = z.object({ sandbox: z.object({ pid: z.int().optional() }).nullish(), goferPid: z.int().optional() });

/** A running runsc. runsc and all its children end with this process. */
export class RunscProcess {
  /** stdin and stdout of the worker. */
  readonly channel: Duplex;
  /** Settles when runsc itself has exited. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  readonly #started: StartedRunsc;
  readonly #pid: number;
  /** Processes stay in this set after they lose their parent and can no longer be found below runsc. */
  readonly #knownPids: Set<number>;
  /** Start times of the sentry and the gofer, by pid. */
  readonly #vitalProcesses = new Map<number, string | null>();
  #memoryFile: string | null = null;

  constructor(started: StartedRunsc) {
    const { channel, exited, pid } = started.process;
    this.channel = channel;
    this.exited = exited;
    this.#started = started;
    this.#pid = pid;
    this.#knownPids = new Set([this.#pid]);
  }

  async listProcesses(): Promise<number[]> {
    const tree = await listProcessTree([...this.#knownPids]);
    for (const pid of tree) this.#knownPids.add(pid);
    return [...new Set(tree)];
  }

  /**
   * Memory that the sandbox uses now, in bytes, for hosts without cgroups. The sentry keeps the memory and the in-memory files of all sandboxed
   * processes in one memfd. Adding up mappings would miss most of it, because the sentry unmaps processes that wait.
   */
  async measureMemory(): Promise<number> {
    const { sandbox, goferPid } = await this.#readState();
    if (sandbox?.pid === undefined) return 0;
    this.#memoryFile ??= findMemoryFile(sandbox.pid);
    const memfd = this.#memoryFile === null ? null : await stat(this.#memoryFile).catch(() => null);
    const own = await Promise.all([this.#pid, sandbox.pid, goferPid ?? 0].map(readPrivateBytes));
    return own.reduce((sum, bytes) => sum + bytes, memfd === null ? 0 : memfd.blocks * 512);
  }

  /** False when the sentry or the gofer is dead. The rest of the sandbox only hangs then. */
  isIntact(): boolean {
    return [...this.#vitalProcesses].every(([pid, startTime]) => startTime !== null && readStartTime(pid) === startTime);
  }

  /** Makes the kernel kill the sentry when memory runs out. If it killed one of the stubs instead, the sandbox would hang. */
  async preferAsMemoryVictim(): Promise<void> {
    const { sandbox, goferPid } = await this.#readState();
    for (const pid of [sandbox?.pid, goferPid]) {
      if (pid === undefined || pid <= 0) continue;
      this.#knownPids.add(pid);
      this.#vitalProcesses.set(pid, readStartTime(pid));
    }
    if (sandbox?.pid !== undefined) await writeFile(`/proc/${sandbox.pid}/oom_score_adj`, "1000").catch(() => {});
  }

  /**
   * Saves the container's memory in the directory and ends it. Without compression, because it makes restore three times slower, although the files
   * would be a quarter of the size.
   */
  async checkpoint(directory: string, signal: AbortSignal): Promise<void> {
    const { runsc, state, containerId } = this.#started;
    const options = [`--image-path=${directory}`, "--compression=none"];
    const [program, ...args] = [...runsc, `--root=${state}`, "checkpoint", ...options, containerId];
    await promisify(execFile)(program, args, { env: {}, timeout: 120_000, signal });
    await this.exited;
  }

  /** Sends SIGKILL to every process of the sandbox. Resolves when none can run any more. */
  async kill(): Promise<void> {
    const { cgroup, process } = this.#started;
    if (cgroup !== null) await cgroup.kill();
    else await killAll(() => this.listProcesses(), 10_000);
    process.kill();
    await this.exited;
  }

  /** Removes runsc's state files of the container. Call it only after the container is dead. */
  async removeState(): Promise<void> {
    const { state, containerId } = this.#started;
    for (const name of [`${this.#stateName}.state`, `${this.#stateName}.lock`, `runsc-${containerId}.sock`])
      await rm(join(state, name), { force: true });
  }

  async #readState(): Promise<z.infer<typeof stateSchema>> {
    const text = await readFile(join(this.#started.state, `${this.#stateName}.state`), "utf8").catch(() => "");
    return stateSchema.safeParse(parseJson(text)).data ?? {}; // the file may be missing or half written
  }

  get #stateName(): string {
    const { containerId } = this.#started;
    return `${containerId}_sandbox:${containerId}`;
  }
}

/** Synchronous: reading hundreds of links takes a microsecond each, asynchronous calls more than a hundred times that. */
function findMemoryFile(sentry: number): string | null {
  const directory = `/proc/${sentry}/fd`;
  try {
    for (const name of readdirSync(directory)) {
      if (readlinkSync(join(directory, name)).startsWith("/memfd:runsc-memory")) return join(directory, name);
    }
  } catch {
    // the sentry has exited
  }
  return null;
}
