import { spawnSync } from "node:child_process";
import path from "node:path";
import { cacheDirectory } from "../src/config/environment.ts";
import { buildLayerOnly } from "../src/sandbox/snapshot/build-snapshot.ts";
import { toRootfsBwrapArguments } from "../src/sandbox/snapshot/run-program.ts";
import { pythonDirectory } from "../src/sandbox/snapshot/recipe.ts";
import { createProgressPrinter } from "../src/cli/progress-printer.ts";
import { type BenchRow, toBenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

/** The output of python/library.py: milliseconds of each run, and whether both sides returned the same result. */
interface Measurements {
  readonly change: Compared;
  readonly merge: Compared;
  readonly importMs: number[];
}

interface Compared {
  readonly ours: number[];
  readonly plain: number[];
  readonly same: boolean;
}

/** Compares the library with the simplest correct pandas code for the same result, in the Python of the snapshot. */
export async function run(): Promise<BenchRow[]> {
  const { change, merge, importMs } = await measure();
  return [
    compare("python.derive_change_series.1m-rows", change),
    compare("python.safe_merge_timeseries.5x200k-rows", merge),
    toBenchRow({ name: "python.import", value: median(importMs), unit: "ms", target: 50 }),
  ];
}

function compare(name: string, { ours, plain, same }: Compared): BenchRow {
  const baseline = { name: "plain pandas", value: median(plain) };
  return toBenchRow({ name, value: median(ours), unit: "ms", baseline, target: 3, holds: same });
}

async function measure(): Promise<Measurements> {
  const rootfs = await buildLayerOnly({ cacheDirectory: cacheDirectory(), onProgress: createProgressPrinter(process.stderr) });
  const options = toRootfsBwrapArguments({
    rootfs,
    args: ["/usr/bin/python3", "/sandbox/bench/library.py"],
    workingDirectory: "/sandbox",
    binds: { "/sandbox/python": path.resolve(pythonDirectory), "/sandbox/bench": path.join(import.meta.dirname, "python") },
    environment: { PYTHONPATH: "/sandbox/python", OPENBLAS_NUM_THREADS: "1", PYTHONHASHSEED: "0", MPLCONFIGDIR: "/sandbox/.matplotlib" },
  });
  const { status, stdout } = spawnSync("bwrap", options, { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
  if (status !== 0) throw new Error(`The Python part of the bench exited with ${status}.`);
  return JSON.parse(stdout) as Measurements;
}
