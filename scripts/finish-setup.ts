/** The part of set-up that runs on Node.js 24: gVisor, the snapshot, the memory image; with `--dev` also what the tests need. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { createProgressPrinter } from "../src/cli/progress-printer.ts";
import { cacheDirectory } from "../src/config/cache-directory.ts";
import { SluiceError } from "../src/errors/sluice-error.ts";
import { buildSnapshot } from "../src/snapshot/build-snapshot.ts";
import { openExtraWheels } from "../src/snapshot/extra-wheels.ts";
import { findSnapshot } from "../src/snapshot/find-snapshot.ts";
import { fetchRunsc } from "./fetch-runsc.ts";

const root = path.join(import.meta.dirname, "..");
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(name, () => interrupted.abort(new Error(`Set-up was ended by ${name}; nothing half-made was left.`)));

const options = { cacheDirectory: cacheDirectory(), onProgress: createProgressPrinter(process.stderr), signal: interrupted.signal };
try {
  await fetchRunsc(options).catch(sayWithoutGvisor);
  await ensureSnapshot();
  if (process.argv.includes("--dev")) await openExtraWheels({ ...options, name: "dev" });
  prepareMemoryImage();
} catch (error) {
  const hint = error instanceof SluiceError && error.hint ? `\n${error.hint}` : "";
  process.stderr.write(`\nset-up: ${error instanceof Error ? error.message : String(error)}${hint}\n`);
  process.exitCode = 1;
}

/** The other drivers do without; `sluice doctor` says what is missing. */
function sayWithoutGvisor(error: unknown): void {
  options.signal.throwIfAborted();
  process.stderr.write(
    `! gVisor could not be brought, its driver will not be usable: ${error instanceof Error ? error.message : String(error)}\n`,
  );
}

async function ensureSnapshot(): Promise<void> {
  if (await findSnapshot(options)) return;
  const snapshot = await buildSnapshot(options);
  if (snapshot.source === "debian") {
    process.stderr.write(
      "! The package index could not be reached: the snapshot was built from Debian's own packages, without pyarrow. `sluice snapshot build` tries again.\n",
    );
  }
}

function prepareMemoryImage(): void {
  if (!existsSync(path.join(root, "src", "cli", "commands", "prepare.ts"))) return;
  const { status } = spawnSync(path.join(root, "bin", "sluice"), ["prepare"], { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.stderr.write("! The memory image was not made; the first sandbox makes it. `sluice doctor` says more.\n");
}
