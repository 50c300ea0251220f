/** The part of set-up that needs Node.js 24: the page, gVisor, the snapshot and the memory image; with `--dev` also the packages for the tests. */
import { prepareSandbox, prepareSnapshot } from "../src/cli/commands/prepare.ts";
import { createProgressPrinter } from "../src/cli/progress-printer.ts";
import { cacheDirectory, searchPath } from "../src/config/environment.ts";
import { SluiceError } from "../src/errors/sluice-error.ts";
import { openExtraWheels } from "../src/sandbox/snapshot/wheels.ts";
import { toCacheFailure } from "../src/sandbox/snapshot/to-cache-failure.ts";

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(name, () => interrupted.abort(new Error(`Interrupted by ${name}; nothing incomplete was left behind.`)));

const options = {
  cacheDirectory: cacheDirectory(),
  searchPath: searchPath(),
  onProgress: createProgressPrinter(process.stderr),
  onWarning: (line: string) => void process.stderr.write(`! ${line}\n`),
  signal: interrupted.signal,
};
try {
  await import("./build-web.ts");
  await prepareSnapshot(options);
  if (process.argv.includes("--dev")) await openExtraWheels({ ...options, name: "dev" });
  await prepareSandbox(options).catch(warnWithoutSandbox);
} catch (thrown) {
  const error = await toCacheFailure(thrown, options.cacheDirectory);
  const hint = error instanceof SluiceError && error.hint ? `\n${error.hint}` : "";
  process.stderr.write(`\nset-up: ${error instanceof Error ? error.message : String(error)}${hint}\n`);
  process.exitCode = 1;
}

/** A machine without a working sandbox does not fail the set-up. The commands that need a sandbox report it again. */
function warnWithoutSandbox(error: unknown): void {
  options.signal.throwIfAborted();
  options.onWarning(
    `No sandbox works on this machine: ${error instanceof Error ? error.message : String(error)}\n  Run \`bin/sluice doctor\` for details.`,
  );
}
