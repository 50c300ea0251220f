import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, type BigIntStats } from "node:fs";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceShape, FileContent, FileFindings } from "../evidence/evidence-store.ts";
import { toPrintable } from "./data-formats.ts";

export interface FileContentOptions {
  readonly real: Buffer;
  readonly kind: FileContent["kind"];
  readonly format: EvidenceFormat;
  readonly maxBytes: number;
  /** Of a file that never changes: its hash is its version. */
  readonly sha256?: string | undefined;
}

export function createFileContent({ real, kind, format, maxBytes, sha256 }: FileContentOptions): FileContent {
  let seen: { version: string; bytes: number } | null = null;
  let known: FileFindings | null = null;
  let hashed: { version: string; sha256: string } | null = null;

  function look<T>(use: (fd: number, stats: BigIntStats) => T): T {
    const { fd, stats } = openGivenFile(real);
    try {
      seen = { version: sha256 ?? toVersion(stats), bytes: Number(stats.size) };
      return use(fd, stats);
    } finally {
      closeSync(fd);
    }
  }

  /** Of one that cannot be looked at, nothing is known yet. */
  function lastSize(): number {
    if (seen !== null) return seen.bytes;
    try {
      return look((_, stats) => Number(stats.size));
    } catch {
      return 0;
    }
  }

  const version = (): string => look((_, stats) => sha256 ?? toVersion(stats));

  /** Of the bytes that are given out: a file that grew or was written meanwhile is told by its times, and read again. */
  function read(): Uint8Array {
    return look((fd, stats) => {
      const size = Number(stats.size);
      if (size > maxBytes) throw tooLarge(real, size, maxBytes);
      return readAll(fd, size);
    });
  }

  function current(): FileFindings | null {
    return known !== null && known.version === seen?.version ? known : null;
  }

  return {
    kind,
    version,
    get bytes() {
      return lastSize();
    },
    get sha256() {
      if (sha256 !== undefined) return sha256;
      const now = version();
      if (hashed?.version !== now) hashed = { version: now, sha256: createHash("sha256").update(read()).digest("hex") };
      return hashed.sha256;
    },
    get shape() {
      return current()?.shape ?? unknownShape(format);
    },
    get schema() {
      return current()?.schema ?? [];
    },
    read,
    learn: (found) => {
      known = found;
    },
  };
}

function toVersion({ dev, ino, size, mtimeNs }: BigIntStats): string {
  return `${dev}-${ino}-${size}-${mtimeNs}`;
}

function unknownShape(format: EvidenceFormat): EvidenceShape {
  const kind = format === "text" ? "text" : format === "json" ? "object" : "table";
  return { kind, rows: null, columns: [], columnCount: 0, columnsFromSample: false, path: [] };
}

const CHUNK_BYTES = 64 * 1024 * 1024;

function readAll(fd: number, size: number): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  while (at < size) {
    const got = readSync(fd, bytes, at, Math.min(CHUNK_BYTES, size - at), at);
    if (got === 0) break; // it was cut meanwhile
    at += got;
  }
  return at === size ? bytes : bytes.subarray(0, at);
}

function tooLarge(real: Buffer, seen: number, allowed: number): UsageError {
  return new UsageError({
    code: "INPUT_TOO_LARGE",
    message: `The file ${toPrintable(real.toString())} has ${seen} bytes; a sandbox takes ${allowed} bytes of inputs.`,
    hint: "Raise limits.sandbox.inputBytes in the configuration, and limits.sandbox.memoryBytes to five times that; or give the table as Parquet, which is smaller.",
    details: { allowed, seen },
  });
}

/**
 * Opens the file that a real path names, and makes sure that it is the one: a link that took the place of the file, or of a folder above it, after the
 * path was resolved leads to another file, and that one is closed again unread. Throws DATA_FILE_GONE or DATA_FILE_REFUSED.
 */
function openGivenFile(real: Buffer): { fd: number; stats: BigIntStats } {
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
