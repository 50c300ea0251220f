import { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync, type BigIntStats } from "node:fs";
import { UsageError } from "../../errors/sluice-error.ts";
import { toPrintable } from "../data-formats.ts";

export interface GivenFile {
  readonly fd: number;
  readonly stats: BigIntStats;
}

/**
 * Opens the file that a real path names, and makes sure that it is the one: a link that took the place of the file, or of a folder above it, after the
 * path was resolved leads to another file, and that one is closed again unread. Throws DATA_FILE_GONE or DATA_FILE_REFUSED.
 */
export function openGivenFile(real: Buffer): GivenFile {
  const fd = openWithoutLink(real);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isFile()) throw refused(real, "it is no regular file any more");
    refuseOther(real, stats);
    return { fd, stats };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Neither waits for a pipe's other end nor takes a terminal. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

function openWithoutLink(real: Buffer): number {
  try {
    return openSync(real, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ELOOP") throw refused(real, "a symbolic link has taken its place");
    throw gone(real, error);
  }
}

/** What was opened has to be what the path without any link names now. */
function refuseOther(real: Buffer, opened: BigIntStats): void {
  let now: BigIntStats;
  let path: Buffer;
  try {
    path = realpathSync.native(real, { encoding: "buffer" });
    now = lstatSync(path, { bigint: true });
  } catch (error) {
    throw gone(real, error);
  }
  if (!path.equals(real)) throw refused(real, "a folder above it was replaced by a symbolic link");
  if (now.ino !== opened.ino || now.dev !== opened.dev) throw refused(real, "it was replaced while it was being opened; try again");
}

const reasons: Readonly<Record<string, string>> = { ENOENT: "it is not there any more", EACCES: "permission was denied" };

function gone(real: Buffer, cause: unknown): UsageError {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  return new UsageError({
    code: "DATA_FILE_GONE",
    message: `The file ${toPrintable(real.toString())} cannot be read: ${reasons[code] ?? message}.`,
    hint: "Put it back, or work with the other data: list_data says what there is.",
    cause,
  });
}

function refused(real: Buffer, why: string): UsageError {
  return new UsageError({
    code: "DATA_FILE_REFUSED",
    message: `The file ${toPrintable(real.toString())} is not read: ${why}.`,
    hint: "Only files inside of what was given with --data are read; give the place that the link leads to as well.",
  });
}
