import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rm, unlink, utimes, writeFile, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { currentProcess, fromProcessKey, isProcessAlive, type ProcessIdentity, toProcessKey } from "../../processes.ts";

const HEARTBEAT_MS = 10_000;
/** Owners in another container or on another machine count as dead after this time without a heartbeat. */
const SILENT_OWNER_MS = 120_000;

/**
 * Creates an empty directory for one build, on the same file system as the result, so that the last step is a rename. It is removed on disposal.
 * The next build removes the directories of killed builds.
 */
export async function openBuildDirectory(cacheDirectory: string): Promise<AsyncDisposable & { readonly directory: string }> {
  const parent = path.join(cacheDirectory, "building");
  await mkdir(parent, { recursive: true });
  await removeAbandonedBuilds(cacheDirectory);
  const directory = path.join(parent, `${process.pid}-${randomBytes(6).toString("hex")}`);
  const ownerFile = `${directory}.owner`;
  await writeFile(ownerFile, await currentOwner());
  await mkdir(directory);
  const heartbeat = startHeartbeat(ownerFile);
  return {
    directory,
    async [Symbol.asyncDispose]() {
      clearInterval(heartbeat);
      await rm(directory, { recursive: true, force: true });
      await rm(ownerFile, { force: true });
    },
  };
}

/** Removes the directories of killed builds. Running builds keep theirs. */
export async function removeAbandonedBuilds(cacheDirectory: string): Promise<void> {
  const parent = path.join(cacheDirectory, "building");
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.endsWith(".owner")) continue;
    const ownerFile = path.join(parent, name);
    if (await isOwnerAlive(ownerFile)) continue;
    // Another process may be removing it at the same time, so retry.
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
 * Waits until no other process holds the lock, then takes it. It only avoids duplicate work; correctness does not depend on it, because a result gets
 * its name by rename and the first one wins.
 */
export async function openLock({ file, onWait, signal }: LockOptions): Promise<AsyncDisposable> {
  await mkdir(path.dirname(file), { recursive: true });
  const ownFile = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeFile(ownFile, await currentOwner());
  try {
    while (!(await tryLink(ownFile, file))) {
      signal?.throwIfAborted();
      if (await isOwnerAlive(file)) {
        onWait?.((await readOwner(file)).owner?.pid ?? 0);
        await wait(250, undefined, { signal });
      } else await rm(file, { force: true });
    }
  } finally {
    await unlink(ownFile);
  }
  const heartbeat = startHeartbeat(file);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(heartbeat);
      await rm(file, { force: true });
    },
  };
}

async function tryLink(ownFile: string, file: string): Promise<boolean> {
  try {
    await link(ownFile, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function startHeartbeat(file: string): NodeJS.Timeout {
  const timer = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => undefined), HEARTBEAT_MS);
  return timer.unref();
}

/** Whether the process that wrote the owner file is still running. */
async function isOwnerAlive(ownerFile: string): Promise<boolean> {
  const { owner, boot } = await readOwner(ownerFile);
  const isRunning = owner !== null && boot === (await readBootId()) ? isProcessAlive(owner) : null;
  if (isRunning !== null) return isRunning;
  const status = await stat(ownerFile).catch(() => null);
  return status !== null && Date.now() - status.mtimeMs < SILENT_OWNER_MS;
}

async function readOwner(file: string): Promise<{ owner: ProcessIdentity | null; boot: string | undefined }> {
  const [key = "", boot] = (await readFile(file, "utf8").catch(() => "")).split(" ");
  return { owner: fromProcessKey(key), boot };
}

/** The process and the boot id of its machine, because machines can share a cache directory. */
async function currentOwner(): Promise<string> {
  return `${toProcessKey(currentProcess())} ${await readBootId()}`;
}

async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
