import path from "node:path";
import { parseArgs } from "node:util";
import { cacheDirectory, searchPath } from "../../config/environment.ts";
import { createProgressPrinter } from "../progress-printer.ts";
import { buildSnapshot } from "../../sandbox/snapshot/build-snapshot.ts";
import { installRunsc } from "../../sandbox/drivers/gvisor/install-runsc.ts";
import { fetchRunsc } from "../../sandbox/drivers/gvisor/runsc.ts";
import { findSnapshot } from "../../sandbox/snapshot/find-snapshot.ts";
import { type OnProgress, runStep } from "../../sandbox/snapshot/progress.ts";
import { removeAbandonedBuilds } from "../../sandbox/snapshot/build-directory.ts";
import { wrongUsage } from "../terminal.ts";
import { createRuntime } from "../../create-runtime.ts";
import { diskBytes } from "../../sandbox/snapshot/file-list.ts";

export const prepareUsage = `Usage: sluice prepare [--runsc FILE_OR_URL --sha512 HASH]

Downloads and builds what sandboxes need: gVisor's program, the snapshot with Python and its
packages, and the memory image of the default sandbox. Then tests the sandbox once.
The first run takes a few minutes, later runs a second. Everything is stored in the cache directory:
SLUICE_CACHE, or ~/.cache/sluice.

  --runsc FILE_OR_URL  install this build of gVisor's program and use it before any other one
  --sha512 HASH        its SHA-512 hash; gVisor publishes it with each release. Nothing is installed
                       or run if the hash differs

Exit status: 0 ready, 1 the given runsc was not installed, 3 no sandbox available.
`;

export async function prepareCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { runsc, sha512 } = parseArgs({ args, options: { runsc: { type: "string" }, sha512: { type: "string" } } }).values;
  if ((runsc === undefined) !== (sha512 === undefined)) throw wrongUsage("prepare", "--runsc and --sha512 are required together.");
  const options = {
    cacheDirectory: cacheDirectory(),
    searchPath: searchPath(),
    onProgress: createProgressPrinter(process.stderr),
    onWarning: (line: string) => void process.stderr.write(`! ${line}\n`),
    signal,
  };
  if (runsc !== undefined && sha512 !== undefined) await installRunsc({ ...options, source: runsc, sha512 });
  await prepareSnapshot(options);
  await prepareSandbox(options);
  return 0;
}

export interface PrepareOptions {
  readonly cacheDirectory: string;
  readonly searchPath: string;
  readonly onProgress?: OnProgress;
  /** Receives one-line warnings that do not stop the preparation. */
  readonly onWarning: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Downloads gVisor's program and builds the snapshot for this version, unless they exist. */
export async function prepareSnapshot({ onWarning, ...options }: PrepareOptions): Promise<void> {
  await removeAbandonedBuilds(options.cacheDirectory);
  await fetchRunsc(options).catch((error: unknown) => {
    options.signal.throwIfAborted();
    // The other drivers do not need it, and `sluice doctor` shows what is missing.
    onWarning(`gVisor could not be downloaded, so its driver is not usable: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (await findSnapshot(options)) return;
  const { source } = await buildSnapshot(options);
  if (source === "debian")
    onWarning(
      "The package index could not be reached, so the snapshot was built from Debian's packages, without pyarrow. Run `sluice snapshot build` to try again.",
    );
}

/** Tests the default driver and creates its memory image, unless that was done already. */
export async function prepareSandbox({ cacheDirectory, searchPath, onProgress, signal }: PrepareOptions): Promise<void> {
  await using runtime = createRuntime({ cacheDirectory, searchPath, poolSize: 0 });
  const imagesBytes = async (): Promise<number> => await diskBytes(path.join(cacheDirectory, "images")).catch(() => 0);
  await runStep("Sandbox: self-test and memory image", onProgress, async () => {
    const before = await imagesBytes();
    const driver = await runtime.driver(signal);
    await driver.prepare({ snapshot: await runtime.snapshot(), signal });
    const createdBytes = (await imagesBytes()) - before;
    return { value: undefined, detail: `${driver.name} is ready`, bytes: createdBytes > 0 ? createdBytes : undefined };
  });
}
