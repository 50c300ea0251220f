import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, type BigIntStats } from "node:fs";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceShape, FileContent, FileFindings } from "../evidence/evidence-store.ts";
import { toPrintable } from "./data-formats.ts";

export interface FileContentOptions {
  /** The real path of the file, as bytes because file names need not be UTF-8. */
  readonly real: Buffer;
  readonly kind: FileContent["kind"];
  readonly format: EvidenceFormat;
  readonly maxBytes: number;
  /** Only for a file that never changes: its hash, which is also its version. */
  readonly sha256?: string | undefined;
}

/** Creates access to a file that may change or disappear at any time. Each use opens the file again. */
export function createFileContent({ real, kind, format, maxBytes, sha256 }: FileContentOptions): FileContent {
  let lastSeen: { version: string; bytes: number } | null = null;
  let findings: FileFindings | null = null;
  let hash: { version: string; sha256: string } | null = null;

  function open<Result>(use: (fd: number, seen: { version: string; bytes: number }) => Result): Result {
    const { fd, stats } = openGivenFile(real);
    try {
      lastSeen = { version: sha256 ?? toVersion(stats), bytes: Number(stats.size) };
      return use(fd, lastSeen);
    } finally {
      closeSync(fd);
    }
  }

  const version = (): string => open((_, seen) => seen.version);
  // If the file is modified during the read, its version changes, and the next use reads it again.
  const read = (): Uint8Array =>
    open((fd, { bytes }) => {
      if (bytes > maxBytes) throw tooLarge(real, bytes, maxBytes);
      return readAll(fd, bytes);
    });
  const currentFindings = (): FileFindings | null => (findings?.version === lastSeen?.version ? findings : null);

  return {
    kind,
    version,
    get bytes() {
      if (lastSeen !== null) return lastSeen.bytes;
      try {
        return open((_, seen) => seen.bytes);
      } catch {
        return 0; // each use of the alias reports why the file cannot be opened
      }
    },
    get sha256() {
      if (sha256 !== undefined) return sha256;
      const current = version();
      if (hash?.version !== current) hash = { version: current, sha256: createHash("sha256").update(read()).digest("hex") };
      return hash.sha256;
    },
    get shape() {
      return currentFindings()?.shape ?? unknownShape(format);
    },
    get schema() {
      return currentFindings()?.schema ?? [];
    },
    get reading() {
      return currentFindings()?.reading ?? null;
    },
    read,
    learn: (found) => {
      findings = found;
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
    const count = readSync(fd, bytes, at, Math.min(CHUNK_BYTES, size - at), at);
    if (count === 0) break; // the file was truncated in the meantime
    at += count;
  }
  return at === size ? bytes : bytes.subarray(0, at);
}

function tooLarge(real: Buffer, seen: number, allowed: number): UsageError {
  return new UsageError({
    code: "INPUT_TOO_LARGE",
    message: `The file ${toPrintable(real.toString())} has ${seen} bytes; a sandbox accepts at most ${allowed} bytes of inputs.`,
    hint: "Raise limits.sandbox.inputBytes in the configuration, and limits.sandbox.memoryBytes to five times that value. Or convert the table to Parquet, which is smaller.",
    details: { allowed, seen },
  });
}

/**
 * Opens the file at a real path and verifies that it is still that file. If the file or a folder above it was replaced by a symbolic link after the path
 * was resolved, the wrong file is closed unread. Throws DATA_FILE_GONE or DATA_FILE_REFUSED.
 */
function openGivenFile(real: Buffer): { fd: number; stats: BigIntStats } {
  const fd = openWithoutLink(real);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isFile()) throw refused(real, "it is no longer a regular file");
    refuseReplaced(real, stats);
    return { fd, stats };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** O_NONBLOCK: opening a pipe must not wait for its other end. O_NOCTTY: a terminal must not become ours. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

function openWithoutLink(real: Buffer): number {
  try {
    return openSync(real, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ELOOP") throw refused(real, "it was replaced by a symbolic link");
    throw gone(real, error);
  }
}

/** Throws unless the path still resolves to itself and to the opened file. */
function refuseReplaced(real: Buffer, opened: BigIntStats): void {
  let current: BigIntStats;
  let path: Buffer;
  try {
    path = realpathSync.native(real, { encoding: "buffer" });
    current = lstatSync(path, { bigint: true });
  } catch (error) {
    throw gone(real, error);
  }
  if (!path.equals(real)) throw refused(real, "a folder above it was replaced by a symbolic link");
  if (current.ino !== opened.ino || current.dev !== opened.dev) throw refused(real, "it was replaced while it was being opened; try again");
}

const reasons: Readonly<Record<string, string>> = { ENOENT: "it no longer exists", EACCES: "permission denied" };

function gone(real: Buffer, cause: unknown): UsageError {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  return new UsageError({
    code: "DATA_FILE_GONE",
    message: `Cannot read the file ${toPrintable(real.toString())}: ${reasons[code] ?? message}.`,
    cause,
  });
}

function refused(real: Buffer, why: string): UsageError {
  return new UsageError({
    code: "DATA_FILE_REFUSED",
    message: `Refusing to read the file ${toPrintable(real.toString())}: ${why}.`,
    hint: "Sluice reads only files inside the paths given with --data. Give the target of the link with --data too.",
  });
}
