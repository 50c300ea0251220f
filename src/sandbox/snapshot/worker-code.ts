import { hash } from "node:crypto";
import fs, { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { recipe } from "./recipe.ts";

/** The directory `python/` of this package. */
export const pythonDirectory: string = fileURLToPath(new URL("../../../python/", import.meta.url));

/** The one file that says which Python packages every driver's snapshot has. */
export const lockFile: string = path.join(pythonDirectory, "requirements.lock");

/** Runs inside the layer as its last step. */
export const finishScript: string = path.join(pythonDirectory, "snapshot", "finish_inside.py");

/** Changes when anything changes that a layer is made from. */
export async function inputsHash(): Promise<string> {
  const files = await Promise.all([lockFile, finishScript].map((file) => readFile(file)));
  return hash("sha256", JSON.stringify([recipe, process.arch, files.map((file) => hash("sha256", file))])).slice(0, 32);
}

/** Where packages that are not Debian's live inside the root. */
export const packagesPath = "usr/local/lib/python3.13/dist-packages";

/** The packages that run inside the sandbox, read once, so that what is hashed is what is installed. */
export interface WorkerCode {
  readonly hash: string;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export async function readWorkerCode(directory: string = pythonDirectory): Promise<WorkerCode> {
  const names: string[] = [];
  for await (const name of fs.glob("{sluice,sluice_worker}/**/*.{py,json,txt,typed}", { cwd: directory })) names.push(name);
  const files = new Map<string, Uint8Array>();
  for (const name of names.sort()) files.set(name, await readFile(path.join(directory, name)));
  const content = JSON.stringify([...files].map(([name, bytes]) => [name, hash("sha256", bytes)]));
  return { hash: hash("sha256", content).slice(0, 32), files };
}

export async function installWorkerCode(code: WorkerCode, rootfs: string): Promise<void> {
  for (const [name, content] of code.files) {
    const target = path.join(rootfs, packagesPath, name);
    await mkdir(path.dirname(target), { recursive: true, mode: 0o755 });
    await writeFile(target, content, { mode: 0o644 });
  }
}
