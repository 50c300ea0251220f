import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { NoSandboxError } from "../errors/sluice-error.ts";
import { currentProcess, fromProcessKey, isProcessAlive, readStartTime, toProcessKey } from "../processes.ts";
import { type Cgroups, findCgroups, listHostCgroups, removeEmptyHostCgroups } from "./cgroup/host-cgroups.ts";
import { cleanHost, pathRecords, processRecords, runscState } from "./clean-host.ts";

/**
 * The files that one host process needs only while it runs: sockets, bundles, lease directories. Private to the user. When the host dies, a reaper
 * process removes the directory and kills the recorded processes.
 */
export interface RunDirectory extends AsyncDisposable {
  readonly path: string;
  readonly cgroups: Cgroups;
  /** State directory of runsc. Every runsc process has this path in its arguments, so it can be found by it. */
  readonly runscState: string;
  newLeaseDirectory(): Promise<LeaseDirectory>;
  /** Makes the reaper kill this process and its descendants if the host dies. The returned function undoes that. */
  recordProcess(pid: number): Promise<() => Promise<void>>;
  /** Makes the reaper remove this absolute path if the host dies. The returned function undoes that. */
  recordPath(path: string): Promise<() => Promise<void>>;
  /** Idempotent. Removes all files in it. Does not kill processes: their owners must have done that. */
  close(): Promise<void>;
}

export interface LeaseDirectory {
  /** Twelve characters, unique. */
  readonly id: string;
  readonly path: string;
  remove(): Promise<void>;
}

export async function openRunDirectory({ parent = tmpdir() }: { readonly parent?: string } = {}): Promise<RunDirectory> {
  const home = join(parent, `sluice-${process.getuid?.() ?? 0}`);
  await makePrivate(home);
  const cgroups = await findCgroups();
  await clearDeadHosts(home, cgroups);

  const host = currentProcess();
  const path = join(home, `${toProcessKey(host)}-${randomBytes(2).toString("hex")}`);
  await mkdir(path, { mode: 0o700 });
  for (const name of [processRecords, pathRecords, runscState, "leases"]) await mkdir(join(path, name), { mode: 0o700 });
  const releaseReaper = startReaper(path);
  let closing: Promise<void> | null = null;

  async function newLeaseDirectory(): Promise<LeaseDirectory> {
    const id = randomBytes(6).toString("hex");
    const directory = join(path, "leases", id);
    await mkdir(directory, { mode: 0o700 });
    return { id, path: directory, remove: () => rm(directory, { recursive: true, force: true }) };
  }

  async function recordProcess(pid: number): Promise<() => Promise<void>> {
    const startTime = readStartTime(pid);
    if (startTime === null) return async () => {};
    return record(join(path, processRecords, `${pid}-${startTime}`), "");
  }

  function recordPath(recorded: string): Promise<() => Promise<void>> {
    return record(join(path, pathRecords, randomBytes(8).toString("hex")), recorded);
  }

  async function close(): Promise<void> {
    await removeEmptyHostCgroups(cgroups, host);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
    releaseReaper();
  }

  return {
    path,
    cgroups,
    runscState: join(path, runscState),
    newLeaseDirectory,
    recordProcess,
    recordPath,
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  };
}

async function record(file: string, content: string): Promise<() => Promise<void>> {
  await writeFile(file, content, { mode: 0o600 });
  return () => rm(file, { force: true });
}

/** Checks that the directory is really ours: in a world-writable parent, another user may have created it, or put a link there. */
async function makePrivate(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw unusable(directory, `it cannot be created: ${error.message}`);
  });
  const stat = await lstat(directory);
  if (!stat.isDirectory()) throw unusable(directory, "it is not a directory");
  if (stat.uid !== process.getuid?.()) throw unusable(directory, `it belongs to another user (uid ${stat.uid})`);
  if ((stat.mode & 0o077) !== 0) await chmod(directory, 0o700);
}

function unusable(directory: string, reason: string): NoSandboxError {
  return new NoSandboxError({
    code: "RUN_DIRECTORY",
    message: `The run directory ${directory} cannot be used: ${reason}.`,
    hint: `Remove ${directory}, or set TMPDIR to a directory that belongs to you.`,
    details: { directory },
  });
}

async function clearDeadHosts(home: string, cgroups: Cgroups): Promise<void> {
  for (const name of await readdir(home)) {
    const host = fromProcessKey(name.replace(/-[0-9a-f]{4}$/, ""));
    if (host !== null && isProcessAlive(host) === false) await cleanHost({ directory: join(home, name), host });
  }
  // A host may have left cgroups but no directory here, for example because it used another TMPDIR.
  for (const host of await listHostCgroups(cgroups)) {
    if (isProcessAlive(host) === false) await cleanHost({ directory: join(home, toProcessKey(host)), host });
  }
}

/**
 * Starts a small process in its own session that outlives this one and cleans up after it. It notices our death, even by SIGKILL, because a pipe
 * that only this process holds is closed then. It keeps neither this process alive nor a terminal busy. The returned function is for a normal end: it
 * makes the reaper exit at once without removing anything.
 */
function startReaper(directory: string): () => void {
  const program = join(import.meta.dirname, `reaper-process${extname(import.meta.filename)}`);
  const child = spawn(process.execPath, ["--no-warnings", program, directory, toProcessKey(currentProcess())], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    cwd: "/",
    env: {},
  });
  child.on("error", () => {}); // without a reaper, the next host cleans up
  child.stdin.on("error", () => {});
  child.unref();
  (child.stdin as unknown as Socket).unref();
  return () => void child.stdin.end("released\n");
}
