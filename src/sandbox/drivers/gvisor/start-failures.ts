import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { NoSandboxError } from "../../../errors/sluice-error.ts";

export function aborted(signal: AbortSignal): NoSandboxError {
  return new NoSandboxError({
    code: "OPEN_ABORTED",
    message: `Opening the gVisor sandbox was aborted: ${toWords(signal.reason)}`,
    cause: signal.reason,
  });
}

function toWords(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

export function cannotStart(error: Error, first?: Error): NoSandboxError {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "GVISOR_START",
    message:
      first === undefined
        ? error.message
        : `${error.message} (Its memory image was made anew before this; the first failure was: ${first.message})`,
    hint: "Run `sluice doctor` to see what this machine allows, or use the bubblewrap driver.",
    cause: error,
  });
}

export function imageFailed(images: string, error: Error): NoSandboxError {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "MEMORY_IMAGE",
    message: `The memory image could not be written to ${images}: ${whyNotWritable(images) ?? error.message}`,
    hint: "Check that the cache directory is writable and has some 200 MB free.",
    cause: error,
  });
}

/** Asks the nearest directory that is there: of a read-only one, a recursive mkdir says that it does not exist. */
function whyNotWritable(directory: string): string | null {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && directory !== dirname(directory) ? whyNotWritable(dirname(directory)) : message;
  }
}
