import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rm, unlink, utimes, writeFile, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { currentProcess, fromProcessKey, isProcessAlive, type ProcessIdentity, toProcessKey } from "../../processes.ts";

const heartbeatMs = 10_000;
/** For owners in another container or on another machine, of whom only the heartbeat can be seen. */
const silentOwnerMs = 120_000;

export interface BuildDirectory extends AsyncDisposable {
  readonly directory: string;
}

/**
 * A directory of one's own to build in, on the same file system as the final place, so that the last step is one rename. Removed at the end, whatever happened;
 * what a killed builder left is removed by the next one.
 */
export async function openBuildDirectory(cacheDirectory: string): Promise<BuildDirectory> {
  const parent = path.join(cacheDirectory, "building");
  await mkdir(parent, { recursive: true });
  await removeAbandonedBuilds(cacheDirectory);
  const directory = path.join(parent, `${process.pid}-${randomBytes(6).toString("hex")}`);
  const ownerFile = `${directory}.owner`;
  await writeFile(ownerFile, await currentOwner());
  await mkdir(directory);
  const heartbeat = beat(ownerFile);
  return {
    directory,
    async [Symbol.asyncDispose]() {
      clearInterval(heartbeat);
      await rm(directory, { recursive: true, force: true });
      await rm(ownerFile, { force: true });
    },
  };
}

/** Removes what killed builders left; the workplaces of living ones stay. */
export async function removeAbandonedBuilds(cacheDirectory: string): Promise<void> {
  const parent = path.join(cacheDirectory, "building");
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.endsWith(".owner")) continue;
    const ownerFile = path.join(parent, name);
    if (await isAlive(ownerFile)) continue;
    // Another one may be removing it at this moment.
    await rm(ownerFile.slice(0, -".owner".length), { recursive: true, force: true, maxRetries: 5 });
    await rm(ownerFile, { force: true });
  }
}

export interface LockOptions {
  readonly file: string;
  readonly onWait?: (pid: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * One holder at a time, the others wait. It saves work and is never relied on for correctness: what is built gets its place by rename, and the first one wins.
 */
export async function openLock({ file, onWait, signal }: LockOptions): Promise<AsyncDisposable> {
  await mkdir(path.dirname(file), { recursive: true });
  const own = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(own, await currentOwner());
  try {
    while (!(await tryLink(own, file))) {
      signal?.throwIfAborted();
      if (await isAlive(file)) {
        onWait?.((await readOwner(file)).owner?.pid ?? 0);
        await wait(250, undefined, { signal });
      } else await rm(file, { force: true });
    }
  } finally {
    await unlink(own);
  }
  const heartbeat = beat(file);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(heartbeat);
      await rm(file, { force: true });
    },
  };
}

async function tryLink(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function beat(file: string): NodeJS.Timeout {
  const timer = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => undefined), heartbeatMs);
  return timer.unref();
}

/** Whether the process that wrote the file is still running. */
async function isAlive(ownerFile: string): Promise<boolean> {
  const { owner, boot } = await readOwner(ownerFile);
  const isRunning = owner !== null && boot === (await readBootId()) ? isProcessAlive(owner) : null;
  if (isRunning !== null) return isRunning;
  const status = await stat(ownerFile).catch(() => null);
  return status !== null && Date.now() - status.mtimeMs < silentOwnerMs;
}

async function readOwner(file: string): Promise<{ owner: ProcessIdentity | null; boot: string | undefined }> {
  const [key = "", boot] = (await readFile(file, "utf8").catch(() => "")).split(" ");
  return { owner: fromProcessKey(key), boot };
}

/** The process and the boot id, because machines can share a cache directory. */
async function currentOwner(): Promise<string> {
  return `${toProcessKey(currentProcess())} ${await readBootId()}`;
}

async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
