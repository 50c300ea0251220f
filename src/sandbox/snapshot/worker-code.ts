import { hash } from "node:crypto";
import fs, { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { recipe } from "./recipe.ts";

/** This package's directory `python/`. */
export const pythonDirectory: string = fileURLToPath(new URL("../../../python/", import.meta.url));

/** The Python packages of every snapshot. */
export const lockFile: string = path.join(pythonDirectory, "requirements.lock");

/** The script that runs inside the layer as the last build step. */
export const finishScript: string = path.join(pythonDirectory, "snapshot", "finish_inside.py");

/** Changes whenever an input of the layer changes: recipe, architecture, lock file or finish script. */
export async function hashLayerInputs(): Promise<string> {
  const files = await Promise.all([lockFile, finishScript].map((file) => readFile(file)));
  return hash("sha256", JSON.stringify([recipe, process.arch, files.map((file) => hash("sha256", file))])).slice(0, 32);
}

/** Where packages that do not come from Debian are installed in the root. */
export const packagesPath = "usr/local/lib/python3.13/dist-packages";

/** Our Python packages that run in the sandbox. They are read once, so that the hash covers exactly what is installed. */
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
