import { parseArgs } from "node:util";
import { cacheDirectory } from "../../config/cache-directory.ts";
import { searchPath } from "../../config/search-path.ts";
import { prepareSandbox } from "../prepare-sandbox.ts";
import { createProgressPrinter } from "../progress-printer.ts";

export const prepareUsage = `Usage: sluice prepare

Tries the default sandbox and makes its memory image, so that the first run is quick. Exit status 0, or 3 when no sandbox can be had.
`;

export async function prepareCommand(args: string[], signal: AbortSignal): Promise<number> {
  parseArgs({ args, options: {} });
  const onProgress = createProgressPrinter(process.stderr);
  await prepareSandbox({ cacheDirectory: cacheDirectory(), searchPath: searchPath(), onProgress, signal });
  return 0;
}
