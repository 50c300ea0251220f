import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { Snapshot } from "../../contract.ts";
import { fromProcessKey, currentProcess, isProcessAlive, toProcessKey } from "../../../processes.ts";
import { parseJson } from "../../../text/json.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { toOciSpec } from "./oci-spec.ts";
import type { Runsc } from "./runsc.ts";

/** The files of a checkpointed container that has imported the stack. `runsc restore` turns them into a running sandbox. */
export interface MemoryImage {
  readonly key: string;
  readonly path: string;
}

export interface ImageKeyOptions {
  readonly snapshot: Snapshot;
  readonly runsc: Runsc;
  readonly flags: readonly string[];
  readonly scratchBytes: number;
}

/** A hash of everything that changes an image or makes it unusable. */
export async function toImageKey({ snapshot, runsc, flags, scratchBytes }: ImageKeyOptions): Promise<string> {
  const spec = toOciSpec({ rootfs: "", scratchBytes });
  const facts = { schemaVersion: 2, snapshot: snapshot.id, runsc: runsc.version, flags, spec, cpu: await readCpuFeatures() };
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

/** Null when there is no such image, it is incomplete, or one of its files has changed since it was saved. */
export async function findImage({ images, key }: { images: string; key: string }): Promise<MemoryImage | null> {
  const path = join(images, key);
  const meta = await readMeta(path);
  if (meta === null) return null;
  for (const [name, made] of Object.entries(meta.files)) {
    const found = await describeFile(join(path, name)).catch(() => null);
    if (found === null || found.bytes !== made.bytes || found.writtenMs !== made.writtenMs) return null;
  }
  await utimes(join(path, META), new Date(), new Date()).catch(() => {}); // removeOldImages keeps the images used last
  return { key, path };
}

/**
 * Saves an image. `make` writes its files into an empty directory, which gets its final name only when it is complete. If two processes save the same
 * image, the first one wins. If the process is killed, its reaper or the next save removes the incomplete directory.
 */
export async function saveImage({ images, key, runDirectory, make }: SaveOptions): Promise<MemoryImage> {
  await mkdir(images, { recursive: true, mode: 0o700 });
  await removeDeadBuilds(images);
  const building = join(images, `${BUILDING}${toProcessKey(currentProcess())}.${randomBytes(4).toString("hex")}`);
  const forget = await runDirectory.recordPath(building);
  try {
    await mkdir(building, { mode: 0o700 });
    await make(building);
    await writeMeta(building);
    await promisify(execFile)("sync", ["-f", building]); // otherwise a power cut can leave files that have their size but no content
    await moveIntoPlace({ building, images, key });
    await removeOldImages(images);
    return { key, path: join(images, key) };
  } finally {
    await rm(building, { recursive: true, force: true });
    await forget();
  }
}

interface SaveOptions {
  readonly images: string;
  readonly key: string;
  readonly runDirectory: RunDirectory;
  readonly make: (directory: string) => Promise<void>;
}

export async function removeImage(image: MemoryImage): Promise<void> {
  await rm(image.path, { recursive: true, force: true });
}

const BUILDING = ".building-";
const META = "meta.json";
const PAGES = "pages.img";
const KEPT_IMAGES = 6;

const fileFactsSchema = z.object({ bytes: z.number(), writtenMs: z.number() });
const metaSchema = z.object({ schemaVersion: z.literal(2), createdAt: z.string(), files: z.record(z.string(), fileFactsSchema) });
type FileFacts = z.infer<typeof fileFactsSchema>;
type ImageMeta = z.infer<typeof metaSchema>;

async function describeFile(path: string): Promise<FileFacts> {
  const { size, mtime } = await stat(path);
  return { bytes: size, writtenMs: mtime.getTime() };
}

async function writeMeta(directory: string): Promise<void> {
  const files: Record<string, FileFacts> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile()) files[relative(directory, file)] = await describeFile(file);
  }
  if (!(PAGES in files)) throw new Error("runsc checkpoint wrote no memory pages");
  const meta: ImageMeta = { schemaVersion: 2, createdAt: new Date().toISOString(), files };
  await writeFile(join(directory, META), JSON.stringify(meta));
}

async function readMeta(directory: string): Promise<ImageMeta | null> {
  return metaSchema.safeParse(parseJson(await readFile(join(directory, META), "utf8").catch(() => ""))).data ?? null;
}

/** rename() fails if the target exists and is not empty. A complete target was saved by another process and is kept; an incomplete one is replaced. */
async function moveIntoPlace({ building, images, key }: { building: string; images: string; key: string }): Promise<void> {
  const path = join(images, key);
  try {
    await rename(building, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    if ((await findImage({ images, key })) !== null) return;
    await rm(path, { recursive: true, force: true });
    await rename(building, path);
  }
}

async function removeDeadBuilds(images: string): Promise<void> {
  for (const name of await readdir(images)) {
    if (!name.startsWith(BUILDING)) continue;
    const host = fromProcessKey(name.slice(BUILDING.length).split(".")[0]!);
    if (host !== null && isProcessAlive(host) === false) await rm(join(images, name), { recursive: true, force: true });
  }
}

/** An image has about 200 MB, and every change of the snapshot creates a new one. A driver that is just restoring a removed image builds it again. */
async function removeOldImages(images: string): Promise<void> {
  const names = (await readdir(images)).filter((name) => !name.startsWith(BUILDING));
  const used = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(images, name, META)).catch(() => null))?.mtimeMs ?? 0 })),
  );
  const old = used.sort((a, b) => b.at - a.at).slice(KEPT_IMAGES);
  for (const { name } of old) await rm(join(images, name), { recursive: true, force: true });
}

/** runsc cannot restore an image on a CPU that lacks a feature of the CPU it was saved on. */
async function readCpuFeatures(): Promise<string> {
  const text = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  const features = new Set([...text.matchAll(/^(?:flags|Features)\s*:\s*(.*)$/gm)].flatMap((match) => match[1]!.trim().split(/\s+/)));
  return createHash("sha256")
    .update([...features].sort().join(" "))
    .digest("hex");
}
