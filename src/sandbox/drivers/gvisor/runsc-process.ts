import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { access, constants, readFile, rm, stat, writeFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { z } from "zod";
import type { LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import { killAll, listProcessTree, readStartTime } from "../../../processes/process-identity.ts";
import { parseJson } from "../../../text/json.ts";
import { readPrivateBytes } from "../../process-usage.ts";

/** An attached `runsc run` or `runsc restore`: its standard input and output are the worker's. It and all it started end with this process. */
export interface RunscProcess {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** What runsc or the worker said on standard error, the first and last few KB. */
  stderr(): string;
  /** Settles when runsc itself is gone; never rejects. */
  readonly exited: Promise<RunscExit>;
  listProcesses(): Promise<number[]>;
  /** What the sandbox holds now, for hosts without cgroups. */
  measureMemory(): Promise<number>;
  /** False when a part of the sandbox is gone without which the rest only hangs. */
  isWhole(): boolean;
  /** Makes the kernel take the whole sandbox when memory runs out, not one of its stubs, after which the rest would hang. */
  preferAsMemoryVictim(): Promise<void>;
  /** SIGKILL to everything. Resolves when nothing of it can run. */
  kill(): Promise<void>;
  /** Removes runsc's records of the container; only once it is dead. */
  removeState(): Promise<void>;
}

export interface RunscExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface RunscCommand {
  readonly runsc: readonly string[];
  /** Directory of runsc's records. */
  readonly state: string;
  readonly flags: readonly string[];
  readonly command: readonly string[];
  readonly containerId: string;
  readonly cgroup: LeaseCgroup | null;
}

/** What is used of runsc's record of a container. */
const stateSchema = z.object({ sandbox: z.object({ pid: z.int().optional() }).nullish(), goferPid: z.int().optional() });

/** Joins the cgroups and becomes the program, so that not one instruction of it runs outside. */
const JOIN_AND_EXEC = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"';
const STDERR_BYTES = 8 * 1024;

export async function startRunsc({ runsc, state, flags, command, containerId, cgroup }: RunscCommand): Promise<RunscProcess> {
  const joinPaths = cgroup?.joinPaths ?? [];
  const words = [...runsc, `--root=${state}`, ...flags, ...command, containerId];
  const child = spawn("/bin/sh", ["-c", JOIN_AND_EXEC, "sh", String(joinPaths.length), ...joinPaths, ...words], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true, // a terminal's Ctrl-C is the host's to handle, not the sandbox's
    cwd: "/",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  });
  const exited = new Promise<RunscExit>((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.once("error", () => resolve({ exitCode: null, signal: null }));
  });
  await once(child, "spawn");
  const readStderr = collectStderr(child);
  const pid = child.pid!;
  const seen = new Set<number>([pid]);
  const parts = new Map<number, string | null>();
  let memoryFile: string | null = null;

  async function readState(): Promise<z.infer<typeof stateSchema>> {
    const text = await readFile(join(state, `${containerId}_sandbox:${containerId}.state`), "utf8").catch(() => "");
    return stateSchema.safeParse(parseJson(text)).data ?? {}; // it may be not there yet, or only half written
  }

  async function listProcesses(): Promise<number[]> {
    const tree = await listProcessTree([...seen]);
    for (const found of tree) seen.add(found);
    return [...new Set(tree)];
  }

  /**
   * All memory of the sandboxed processes, and its files in memory, is one memfd of the sentry. Adding up what is mapped would miss most of it: the sentry
   * unmaps a process that waits.
   */
  async function measureMemory(): Promise<number> {
    const { sandbox, goferPid } = await readState();
    if (sandbox?.pid === undefined) return 0;
    memoryFile ??= findMemoryFile(sandbox.pid);
    const held = memoryFile === null ? null : await stat(memoryFile).catch(() => null);
    const own = await Promise.all([pid, sandbox.pid, goferPid ?? 0].map(readPrivateBytes));
    return own.reduce((sum, bytes) => sum + bytes, held === null ? 0 : held.blocks * 512);
  }

  async function preferAsMemoryVictim(): Promise<void> {
    const { sandbox, goferPid } = await readState();
    for (const known of [sandbox?.pid, goferPid]) {
      if (known === undefined || known <= 0) continue;
      seen.add(known);
      parts.set(known, readStartTime(known));
    }
    if (sandbox?.pid !== undefined) await writeFile(`/proc/${sandbox.pid}/oom_score_adj`, "1000").catch(() => {});
  }

  function isWhole(): boolean {
    return [...parts].every(([part, startTime]) => startTime !== null && readStartTime(part) === startTime);
  }

  async function kill(): Promise<void> {
    if (cgroup !== null) await cgroup.kill();
    else await killAll(listProcesses, 10_000);
    child.kill("SIGKILL");
    await exited;
  }

  async function removeState(): Promise<void> {
    const records = `${containerId}_sandbox:${containerId}`;
    for (const name of [`${records}.state`, `${records}.lock`, `runsc-${containerId}.sock`]) await rm(join(state, name), { force: true });
  }

  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: readStderr,
    exited,
    listProcesses,
    measureMemory,
    isWhole,
    preferAsMemoryVictim,
    kill,
    removeState,
  };
}

function collectStderr(child: ChildProcess): () => string {
  let head = "";
  let tail = "";
  child.stderr!.setEncoding("utf8");
  child.stderr!.on("data", (text: string) => {
    const room = STDERR_BYTES - head.length;
    head += text.slice(0, room);
    tail = (tail + text.slice(room)).slice(-STDERR_BYTES);
  });
  child.stderr!.on("error", () => {});
  return () => head + tail;
}

/** Hundreds of descriptors, a microsecond each; asynchronous calls would cost more than a hundred times that. */
function findMemoryFile(sentry: number): string | null {
  const directory = `/proc/${sentry}/fd`;
  try {
    for (const name of readdirSync(directory)) {
      if (readlinkSync(join(directory, name)).startsWith("/memfd:runsc-memory")) return join(directory, name);
    }
  } catch {
    // gone already
  }
  return null;
}

export interface Runsc {
  readonly path: string;
  /** As it names itself, `0.0~20240729.0` or `release-20260817.0`. */
  readonly version: string;
  /** From the version, when it says so. */
  readonly releasedAt: Date | null;
}

export interface FindRunscOptions {
  /** Taken as it is when given. */
  readonly runscPath?: string;
  /** Directories separated by colons, as in PATH. */
  readonly searchPath: string;
  /** The one that set-up extracted, if it did. */
  readonly fallback: string;
}

export async function findRunsc({ runscPath, searchPath, fallback }: FindRunscOptions): Promise<Runsc | null> {
  const directories = searchPath.split(":").filter(isAbsolute);
  const candidates = runscPath === undefined ? [...directories.map((directory) => join(directory, "runsc")), fallback] : [runscPath];
  for (const path of candidates) {
    if (await isExecutable(path)) return describeRunsc(path);
  }
  return null;
}

async function describeRunsc(path: string): Promise<Runsc> {
  const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: 10_000, env: {} });
  const version = /^runsc version (\S+)/m.exec(stdout)?.[1] ?? "unknown";
  return { path, version, releasedAt: toReleaseDate(version) };
}

export function toReleaseDate(version: string): Date | null {
  const match = /(20\d{2})(0[1-9]|1[0-2])([0-3]\d)/.exec(version);
  if (match === null) return null;
  const date = new Date(`${match[1]}-${match[2]}-${match[3]}T00:00:00Z`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** For a person: `released 2024-07-29, 27 months ago`. */
export function describeAge({ releasedAt }: Runsc, now: Date = new Date()): string {
  if (releasedAt === null) return "release date unknown";
  const months = Math.max(0, Math.round((now.getTime() - releasedAt.getTime()) / (30.44 * 86_400_000)));
  return `released ${releasedAt.toISOString().slice(0, 10)}, ${months === 1 ? "1 month" : `${months} months`} ago`;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/**
 * The flags of every runsc command. `--directfs=false`: files are opened by the gofer, so the sandbox process itself is nobody without capabilities; restore is not
 * slower for it. Without root there is no nobody to become, and the sandbox process opens files of the snapshot itself. `--overlay2=none`: the root is read-only, nothing
 * has to be overlaid and no file store appears beside it. `--ignore-cgroups`: the sandbox is put into a cgroup of ours before runsc starts.
 * `--file-access=exclusive`: nobody changes a snapshot while it is used.
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
 * What is put before runsc. Without root, runsc gets a user namespace in which it is root and nothing else is there: its own `--rootless` does the same,
 * but refuses to restore. The signal at the parent's death comes last, because entering a namespace clears it; both programs are in util-linux, which every Debian has.
 */
export function toRunscPrefix({ rootless }: { rootless: boolean }): string[] {
  const setpriv = "/usr/bin/setpriv";
  return [...(rootless ? userNamespaceCommand : []), ...(existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL"] : [])];
}

/** Runs what follows it as root of a user namespace that holds the present user only. */
export const userNamespaceCommand: readonly string[] = ["/usr/bin/unshare", "--user", "--map-root-user"];
