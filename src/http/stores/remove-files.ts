import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import type { Files } from "../../history/contract.ts";

interface Places {
  readonly artifacts: string;
  readonly datasets: string;
  readonly evidence: string;
}

/** As the stores lay them out: `ab/abcd….png`; a dataset has its index and its Parquet tables beside it. All at once, inside of the history's transaction. */
export function removeFiles(places: Places, { artifacts, datasets, evidence }: Files): void {
  for (const { contentHash, type } of artifacts) remove(path.join(places.artifacts, contentHash.slice(0, 2), `${contentHash}.${type}`));
  for (const hash of evidence) remove(path.join(places.evidence, hash.slice(0, 2), hash));
  for (const hash of datasets) {
    const directory = path.join(places.datasets, hash.slice(0, 2));
    for (const name of namesIn(directory)) if (name.startsWith(`${hash}.`)) remove(path.join(directory, name));
  }
}

/** What a server that was killed, or a client that is gone for long, left. */
export function listOldFiles(places: Places, { olderThanMs, inUse }: { olderThanMs: number; inUse: Files }): Omit<Files, "uploads"> {
  const used = new Set([
    ...inUse.artifacts.map(({ contentHash, type }) => `${contentHash}.${type}`),
    ...inUse.datasets.map((hash) => `${hash}.json`),
    ...inUse.evidence,
  ]);
  const old = (place: string): string[] =>
    filesIn(place)
      .filter((file) => !used.has(path.basename(file)) && isOld(file, olderThanMs))
      .map((file) => path.basename(file));
  return {
    artifacts: old(places.artifacts).flatMap((name) => {
      const [, contentHash, type] = /^([0-9a-f]{64})\.(png|json)$/.exec(name) ?? [];
      return contentHash === undefined || type === undefined ? [] : [{ contentHash, type }];
    }),
    datasets: old(places.datasets).flatMap((name) => /^([0-9a-f]{64})\.json$/.exec(name)?.[1] ?? []),
    evidence: old(places.evidence).filter((name) => /^[0-9a-f]{64}$/.test(name)),
  };
}

/** Files get their name when they are whole; until then it ends in `.part`, or `.part-index`. */
export function removeOldDrafts(places: Places, olderThanMs: number): number {
  const drafts = Object.values(places)
    .flatMap(filesIn)
    .filter((file) => /\.part(-index)?$/.test(file) && isOld(file, olderThanMs));
  for (const draft of drafts) remove(draft);
  return drafts.length;
}

function filesIn(place: string): string[] {
  return existsSync(place) ? readdirSync(place, { recursive: true, encoding: "utf8" }).map((name) => path.join(place, name)) : [];
}

function isOld(file: string, olderThanMs: number): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && Date.now() - found.mtimeMs > olderThanMs;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function remove(file: string): void {
  rmSync(file, { force: true });
}
