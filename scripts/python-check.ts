/**
 * Runs the checks of python/ with the Python of the snapshot, inside bubblewrap: `python-check.ts` for all checks, or with one of
 * `ruff|format|mypy|pytest|python` and its arguments. Needs only the base layer of the snapshot, because the code comes from the clone.
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { cacheDirectory } from "../src/config/environment.ts";
import { buildLayerOnly } from "../src/sandbox/snapshot/build-snapshot.ts";
import { openExtraWheels } from "../src/sandbox/snapshot/wheels.ts";
import { toRootfsBwrapArguments } from "../src/sandbox/snapshot/run-program.ts";
import { pythonDirectory } from "../src/sandbox/snapshot/recipe.ts";
import { createProgressPrinter } from "../src/cli/progress-printer.ts";

const checks: Record<string, readonly string[]> = {
  ruff: ["/tmp/extra/bin/ruff", "check", "--no-cache", "."],
  format: ["/tmp/extra/bin/ruff", "format", "--no-cache", "--check", "."],
  mypy: ["/usr/bin/python3", "-m", "mypy", "--cache-dir=/tmp/mypy", "."],
  pytest: ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q"],
  python: ["/usr/bin/python3"],
};

const [chosen, ...rest] = process.argv.slice(2);
const onProgress = createProgressPrinter(process.stderr);
const cache = cacheDirectory();
const rootfs = await buildLayerOnly({ cacheDirectory: cache, onProgress });
const extra = await openExtraWheels({ cacheDirectory: cache, name: "dev", onProgress });

let failed = 0;
for (const name of chosen ? [chosen] : ["ruff", "format", "mypy", "pytest"]) {
  const command = checks[name];
  if (!command) throw new Error(`Unknown check ${name}. Choose one of ${Object.keys(checks).join(", ")}.`);
  process.stderr.write(`python: ${name}\n`);
  // Given paths replace the default, which is everything.
  const options = rest.length > 0 ? command.filter((word) => word !== ".") : command;
  if (run([...options, ...rest]) !== 0) failed++;
}
process.exitCode = failed === 0 ? 0 : 1;

function run(args: readonly string[]): number {
  const options = toRootfsBwrapArguments({
    rootfs,
    args,
    workingDirectory: "/sandbox/python",
    binds: {
      "/tmp/extra": extra,
      "/sandbox/python": path.resolve(pythonDirectory),
      // The tests also read the corpus, which they share with the TypeScript tests, and run the examples of the docs.
      "/sandbox/corpus": path.resolve(pythonDirectory, "../corpus"),
      "/sandbox/docs": path.resolve(pythonDirectory, "../docs"),
    },
    environment: {
      PYTHONPATH: "/sandbox/python:/tmp/extra",
      MPLCONFIGDIR: "/sandbox/.matplotlib",
      HYPOTHESIS_STORAGE_DIRECTORY: "/tmp/hypothesis",
      OPENBLAS_NUM_THREADS: "1",
      PYTHONHASHSEED: "0",
    },
  });
  return spawnSync("bwrap", options, { stdio: ["ignore", "inherit", "inherit"] }).status ?? 1;
}
