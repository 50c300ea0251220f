import { parseArgs } from "node:util";
import { cacheDirectory } from "../../config/cache-directory.ts";
import { searchPath } from "../../config/search-path.ts";
import { prepareSandbox } from "../prepare-sandbox.ts";
import { prepareSnapshot } from "../prepare-snapshot.ts";
import { createProgressPrinter } from "../progress-printer.ts";

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
