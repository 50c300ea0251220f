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

Brings all that sandboxes need and is not there yet: gVisor's program, the snapshot with Python and its packages, and the memory image of the default sandbox, which
is tried once. Takes a few minutes the first time and a second after that; everything goes to the cache directory (SLUICE_CACHE).
Exit status 0, or 3 when no sandbox can be had.
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
  /** What a person should know and nothing ends for, one line. */
  readonly onWarning: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Brings what sandboxes are made of, unless it is there: gVisor's program, and the snapshot for this version. */
export async function prepareSnapshot({ onWarning, ...options }: PrepareOptions): Promise<void> {
  await removeAbandonedBuilds(options.cacheDirectory);
  await fetchRunsc(options).catch((error: unknown) => {
    options.signal.throwIfAborted();
    // The other drivers do without; `sluice doctor` says what is missing.
    onWarning(`gVisor could not be brought, its driver will not be usable: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (await findSnapshot(options)) return;
  const { source } = await buildSnapshot(options);
  if (source === "debian")
    onWarning(
      "The package index could not be reached: the snapshot was built from Debian's own packages, without pyarrow. `sluice snapshot build` tries again.",
    );
}

/** Makes what the default driver keeps between runs (the memory image) and tries its sandbox once, unless that is done already. */
export async function prepareSandbox({ cacheDirectory, searchPath, onProgress, signal }: PrepareOptions): Promise<void> {
  await using runtime = createRuntime({ cacheDirectory, searchPath, poolSize: 0 });
  const imagesBytes = async (): Promise<number> => await diskBytes(path.join(cacheDirectory, "images")).catch(() => 0);
  await runStep("Sandbox: self-test and memory image", onProgress, async () => {
    const before = await imagesBytes();
    const driver = await runtime.driver(signal);
    await driver.prepare({ snapshot: await runtime.snapshot(), signal });
    const made = (await imagesBytes()) - before;
    return { value: undefined, detail: `${driver.name} is ready`, ...(made > 0 && { bytes: made }) };
  });
}
