import { existsSync, readdirSync, rmSync, statSync, type Stats } from "node:fs";
import path from "node:path";

export interface LooseFilesOptions {
  /** Where `sluice ask` and `sluice mcp` keep artifacts, and datasets below it. */
  readonly directory: string;
  /** Not used since then. */
  readonly tooOld: Date;
  readonly maxBytes: number;
  /** What is younger may be in use. */
  readonly untouchedSince: Date;
  readonly isDryRun: boolean;
}

export interface PrunedFiles {
  readonly expired: number;
  readonly overQuota: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

interface Found {
  readonly file: string;
  readonly stats: Stats;
}

/** Files that no history knows of, because those who made them keep none: their age is all that there is to go by. */
export function pruneLooseFiles({ directory, tooOld, maxBytes, untouchedSince, isDryRun }: LooseFilesOptions): PrunedFiles {
  const files = [directory, path.join(directory, "datasets")].flatMap(filesByHash);
  files.sort((a, b) => a.stats.mtimeMs - b.stats.mtimeMs);
  const bytesBefore = files.reduce((sum, { stats }) => sum + stats.size, 0);
  const counts = { expired: 0, overQuota: 0, bytesBefore, bytesAfter: bytesBefore };
  for (const { file, stats } of files) {
    const isExpired = stats.mtime < tooOld;
    if (stats.mtime >= untouchedSince || (!isExpired && counts.bytesAfter <= maxBytes)) break; // the rest is younger
    if (!isDryRun) rmSync(file, { force: true });
    counts.bytesAfter -= stats.size;
    counts[isExpired ? "expired" : "overQuota"] += 1;
  }
  return counts;
}

/** As the stores lay them out, `ab/abcd….png`, and drafts that nobody finished. Nothing else that may be there is looked at. */
function filesByHash(directory: string): Found[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory).flatMap((name) => {
    if (/\.part(-index)?$/.test(name)) return [name];
    if (name === "drafts") return readdirSync(path.join(directory, name)).map((draft) => path.join(name, draft));
    if (!/^[0-9a-f]{2}$/.test(name)) return [];
    return readdirSync(path.join(directory, name)).flatMap((file) =>
      new RegExp(`^${name}[0-9a-f]{62}\\.`).test(file) ? [path.join(name, file)] : [],
    );
  });
  return names.flatMap((name) => {
    const file = path.join(directory, name);
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() === true ? [{ file, stats }] : [];
  });
}
