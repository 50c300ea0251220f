import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";
import { diskBytes } from "./file-list.ts";
import { installWheels } from "./install-wheels.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { pythonDirectory } from "./worker-code.ts";
import { openLock, openWorkplace } from "./workplace.ts";

export interface ExtraWheelsOptions {
  readonly cacheDirectory: string;
  /** `dev`: what the tests of python/ need. `bench`, `bench-execute`: the peers that are measured. */
  readonly name: "dev" | "bench" | "bench-execute";
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** Packages that are never part of a snapshot, for the snapshot's Python, in a directory to be shown to it by a bind mount and PYTHONPATH. */
export async function openExtraWheels({ cacheDirectory, name, onProgress, signal }: ExtraWheelsOptions): Promise<string> {
  const lockFile = path.join(pythonDirectory, `requirements-${name}.lock`);
  const final = path.join(cacheDirectory, "wheels", `${name}-${process.arch}-${hash("sha256", await readFile(lockFile)).slice(0, 16)}`);
  if (existsSync(final)) return final;
  await using _lock = await openLock({ file: path.join(cacheDirectory, "locks", `wheels-${name}`), signal });
  if (existsSync(final)) return final;
  await using workplace = await openWorkplace(cacheDirectory);
  const target = path.join(workplace.directory, "wheels");
  await runStep(`Python wheels for ${name === "dev" ? "the tests" : "the bench"}`, onProgress, async (say) => {
    const outcome = await installWheels({ lockFile, target, onLine: say, signal });
    if (!outcome.installed) {
      throw new SluiceError({ code: "EXTRA_WHEELS_UNREACHABLE", message: `${path.basename(lockFile)}: ${outcome.unreachable}.` });
    }
    return { value: undefined, bytes: await diskBytes(target) };
  });
  await mkdir(path.dirname(final), { recursive: true });
  await rename(target, final);
  return final;
}
