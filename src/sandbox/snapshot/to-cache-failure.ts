import { access, constants } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";

/** What went wrong in a build, told as what is wrong with the cache directory where that is the cause. Anything else comes back as it is. */
export async function toCacheFailure(error: unknown, cacheDirectory: string): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  if (/ENOSPC|No space left on device/.test(error.message)) {
    return new SluiceError({
      code: "CACHE_FULL",
      message: `There is no space left for the cache directory ${cacheDirectory}.`,
      hint: "A build needs 1.5 GB there while it works, and keeps half of that. Make room, or set SLUICE_CACHE to a directory on another disk.",
      cause: error,
    });
  }
  const reason = await whyNotWritable(cacheDirectory);
  if (reason === null) return error;
  return new SluiceError({
    code: "CACHE_NOT_WRITABLE",
    message: `The cache directory ${cacheDirectory} cannot be written: ${reason}.`,
    hint: "Set SLUICE_CACHE to a directory that this user may write to.",
    cause: error,
  });
}

/** Asks the nearest directory that is there: the error of a recursive mkdir does not say it. */
async function whyNotWritable(directory: string): Promise<string | null> {
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && directory !== path.dirname(directory) ? await whyNotWritable(path.dirname(directory)) : message;
  }
}
