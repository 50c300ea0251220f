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

/** A container with the stack imported, as files: `runsc restore` makes a running sandbox of it. */
export interface MemoryImage {
  readonly key: string;
  readonly path: string;
}

export interface ImageFacts {
  readonly snapshot: Snapshot;
  readonly runsc: Runsc;
  readonly flags: readonly string[];
  readonly scratchBytes: number;
}

/** Anything that makes a saved memory differ, or unusable: then it is another image. */
export async function toImageKey({ snapshot, runsc, flags, scratchBytes }: ImageFacts): Promise<string> {
  const spec = toOciSpec({ rootfs: "", scratchBytes });
  const facts = { schemaVersion: 2, snapshot: snapshot.id, runsc: runsc.version, flags, spec, cpu: await readCpuFeatures() };
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

/** Null when there is none, or it is not whole, or a file of it was written to since it was made. */
export async function findImage({ images, key }: { images: string; key: string }): Promise<MemoryImage | null> {
  const path = join(images, key);
  const meta = await readMeta(path);
  if (meta === null) return null;
  for (const [name, made] of Object.entries(meta.files)) {
    const found = await describeFile(join(path, name)).catch(() => null);
    if (found === null || found.bytes !== made.bytes || found.writtenMs !== made.writtenMs) return null;
  }
  await utimes(join(path, META), new Date(), new Date()).catch(() => {}); // used last now
  return { key, path };
}

/**
 * Makes an image through `make`, which gets an empty directory to write to. It appears under its name only when it is whole; who makes the same one at
 * the same time does no harm: the first stays. A build that is interrupted leaves a directory that its reaper, or the next build, removes.
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
    await promisify(execFile)("sync", ["-f", building]); // after a power cut a file may have its size and nothing in it
    await moveInto({ building, path: join(images, key), images, key });
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

export interface CheckpointOptions {
  readonly runsc: readonly string[];
  readonly state: string;
  readonly flags: readonly string[];
  readonly containerId: string;
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** `checkpoint` ends the container as well. No compression: it makes the files a quarter of the size and restore three times as slow. */
export async function checkpointContainer({ runsc, state, flags, containerId, directory, signal }: CheckpointOptions): Promise<void> {
  const options = [`--image-path=${directory}`, "--compression=none"];
  const [program, ...words] = [...runsc, `--root=${state}`, ...flags, "checkpoint", ...options, containerId];
  await promisify(execFile)(program, words, { env: {}, timeout: 120_000, signal });
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
  if (!(PAGES in files)) throw new Error("runsc checkpoint wrote nothing");
  const meta: ImageMeta = { schemaVersion: 2, createdAt: new Date().toISOString(), files };
  await writeFile(join(directory, META), JSON.stringify(meta));
}

async function readMeta(directory: string): Promise<ImageMeta | null> {
  return metaSchema.safeParse(parseJson(await readFile(join(directory, META), "utf8").catch(() => ""))).data ?? null;
}

/** rename() refuses a directory that is there and not empty. If that one is whole, somebody else was first; if not, it is in the way. */
async function moveInto({ building, path, images, key }: { building: string; path: string; images: string; key: string }): Promise<void> {
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

/** An image is some 200 MB, and every change of the snapshot makes another one. Who restores from one that goes at this moment makes it anew. */
async function removeOldImages(images: string): Promise<void> {
  const names = (await readdir(images)).filter((name) => !name.startsWith(BUILDING));
  const used = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(images, name, META)).catch(() => null))?.mtimeMs ?? 0 })),
  );
  const old = used.sort((a, b) => b.at - a.at).slice(KEPT_IMAGES);
  for (const { name } of old) await rm(join(images, name), { recursive: true, force: true });
}

/** runsc refuses to restore on a processor that lacks a feature of the one it was saved on. */
async function readCpuFeatures(): Promise<string> {
  const text = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  const features = new Set([...text.matchAll(/^(?:flags|Features)\s*:\s*(.*)$/gm)].flatMap((match) => match[1]!.trim().split(/\s+/)));
  return createHash("sha256")
    .update([...features].sort().join(" "))
    .digest("hex");
}
