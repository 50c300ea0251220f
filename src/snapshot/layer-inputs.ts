import { readFile } from "node:fs/promises";
import path from "node:path";
import { sha256 } from "./file-list.ts";
import { recipe } from "./recipe.ts";
import { pythonDirectory } from "./worker-code.ts";

/** The one file that says which Python packages every driver's snapshot has. */
export const lockFile: string = path.join(pythonDirectory, "requirements.lock");

/** Runs inside the layer as its last step. */
export const finishScript: string = path.join(pythonDirectory, "snapshot", "finish_inside.py");

/** Changes when anything changes that a layer is made from. */
export async function inputsHash(): Promise<string> {
  const files = await Promise.all([lockFile, finishScript].map((file) => readFile(file)));
  return sha256(JSON.stringify([recipe, process.arch, files.map(sha256)])).slice(0, 32);
}
