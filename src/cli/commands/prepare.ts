import path from "node:path";
import { parseArgs } from "node:util";
import { cacheDirectory, searchPath } from "../../config/environment.ts";
import { createProgressPrinter } from "../progress-printer.ts";
import { buildSnapshot } from "../../sandbox/snapshot/build-snapshot.ts";
import { fetchRunsc } from "../../sandbox/drivers/gvisor/runsc.ts";
import { findSnapshot } from "../../sandbox/snapshot/find-snapshot.ts";
import { type OnProgress, runStep } from "../../sandbox/snapshot/progress.ts";
import { removeAbandonedBuilds } from "../../sandbox/snapshot/build-directory.ts";
import { createRuntime } from "../../create-runtime.ts";
import { diskBytes } from "../../sandbox/snapshot/file-list.ts";

export const prepareUsage = `Usage: sluice prepare

Downloads and builds what sandboxes need: gVisor's program, the snapshot with Python and its
packages, and the memory image of the default sandbox. Then tests the sandbox once.
The first run takes a few minutes, later runs a second. Everything is stored in the cache directory:
SLUICE_CACHE, or ~/.cache/sluice.

Exit status: 0 ready, 3 no sandbox available.
`;

export async function prepareCommand(args: string[], signal: AbortSignal): Promise<number> {
  parseArgs({ args, options: {} });
  const options = {
    cacheDirectory: cacheDirectory(),
    searchPath: searchPath(),
    onProgress: createProgressPrinter(process.stderr),
    onWarning: (line: string) => void process.stderr.write(`! ${line}\n`),
    signal,
  };
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
