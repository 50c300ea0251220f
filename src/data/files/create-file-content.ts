import { createHash } from "node:crypto";
import { closeSync, readSync, type BigIntStats } from "node:fs";
import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceShape, FileContent, FileFindings } from "../../evidence/contract.ts";
import { toPrintable } from "../data-formats.ts";
import { openGivenFile } from "./open-given-file.ts";

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
