import { access, constants } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";

/** Translates an error of a build that was caused by the cache directory (full, not writable). Returns any other error unchanged. */
export async function toCacheFailure(error: unknown, cacheDirectory: string): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  if (/ENOSPC|No space left on device/.test(error.message)) {
    return new SluiceError({
      code: "CACHE_FULL",
      message: `No space is left for the cache directory ${cacheDirectory}.`,
      hint: "A build needs 1.5 GB while it runs and keeps half of that. Free some space, or set SLUICE_CACHE to a directory on another disk.",
      cause: error,
    });
  }
  const reason = await whyNotWritable(cacheDirectory);
  if (reason === null) return error;
  return new SluiceError({
    code: "CACHE_NOT_WRITABLE",
    message: `The cache directory ${cacheDirectory} is not writable: ${reason}.`,
    hint: "Set SLUICE_CACHE to a directory that this user may write to.",
    cause: error,
  });
}

/** Checks the nearest existing directory, because the error of a recursive mkdir does not name the cause. Null if it is writable. */
export async function whyNotWritable(directory: string): Promise<string | null> {
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && directory !== path.dirname(directory) ? await whyNotWritable(path.dirname(directory)) : message;
  }
}
