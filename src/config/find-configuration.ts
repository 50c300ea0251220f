import { stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors/sluice-error.ts";

const configurationName = "sluice.config.json";

/**
 * The nearest file from a directory upward; null when there is none. A configuration starts programs, so one that was only come upon must belong to this
 * user or to root, and nobody else may be able to write it: a file that a stranger left in /tmp is refused, not skipped.
 */
export async function findConfiguration(workingDirectory: string): Promise<string | null> {
  for (let directory = path.resolve(workingDirectory); ; directory = path.dirname(directory)) {
    const file = path.join(directory, configurationName);
    const found = await stat(file).catch(() => null);
    if (found?.isFile()) {
      const doubt = doubtOf(found);
      if (doubt !== null) throw notTrusted(file, doubt);
      return file;
    }
    if (directory === path.dirname(directory)) return null;
  }
}

function doubtOf({ uid, mode }: { uid: number; mode: number }): string | null {
  const self = process.getuid?.();
  if (self === undefined) return null;
  if (uid !== self && uid !== 0) return `it belongs to the user ${uid}`;
  return (mode & 0o002) === 0 ? null : "everybody may write to it";
}

function notTrusted(file: string, doubt: string): UsageError {
  return new UsageError({
    code: "CONFIGURATION_NOT_TRUSTED",
    message: `${file} was found and not read: ${doubt}, and a configuration starts programs.`,
    hint: `If it is yours, give it by name: --config ${file}`,
  });
}
