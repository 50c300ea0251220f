import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import { openTableDownload, type TableDownloadOptions } from "../data/open-table-download.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import type { TurnResult } from "../protocol/turn-result.ts";
import { makeDirectory, nameArtifactFile, toFileUrl } from "./write-artifacts.ts";

export interface WrittenTurn {
  readonly result: TurnResult;
  readonly files: readonly { readonly what: string; readonly file: string }[];
}

interface WriteTurnOptions {
  readonly result: TurnResult;
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  readonly directory: string;
  /** Converts tables to CSV. */
  readonly openCellSession: TableDownloadOptions["openCellSession"];
}

/**
 * Writes a turn to a directory: its figures and charts, the dataset as JSON, each table as CSV, and the result with the URLs of these files. If it throws,
 * some of the files may exist.
 */
export async function writeTurn(options: WriteTurnOptions): Promise<WrittenTurn> {
  try {
    return await writeFiles(options);
  } catch (cause) {
    if (cause instanceof SluiceError) throw cause; // an error of a store, or of a table that cannot be written as CSV
    throw new SluiceError({
      code: "ARTIFACTS_NOT_WRITTEN",
      message: `The question was answered, but its files cannot be written to ${options.directory}: ${(cause as Error).message}.`,
      cause,
    });
  }
}

async function writeFiles({ result, artifacts, datasets, directory, openCellSession }: WriteTurnOptions): Promise<WrittenTurn> {
  await makeDirectory(path.resolve(directory));
  const files: WrittenTurn["files"][number][] = [];
  const written: TurnResult["artifacts"] = [];
  for (const [index, artifact] of result.artifacts.entries()) {
    const file = path.join(directory, nameArtifactFile(artifact, index));
    const bytes = await artifacts.get(artifact.contentHash, artifact.kind === "image" ? "png" : "json");
    if (bytes === null) continue;
    await writeFile(file, bytes);
    files.push({ what: artifact.title ?? artifact.kind, file });
    written.push({ ...artifact, url: toFileUrl(file) });
  }
  const reader = result.dataset === null ? null : await datasets.open(result.dataset.hash);
  const datasetFile = path.join(directory, "dataset.json");
  if (reader !== null) {
    await pipeline(reader.stream(), createWriteStream(datasetFile));
    for (const { name: table } of reader.tables) {
      const csv = await openTableDownload({ datasets, hash: reader.hash, table, as: "csv", openCellSession });
      if (csv !== null) await pipeline(csv.stream(), createWriteStream(path.join(directory, `${table}.csv`)));
    }
  }
  const dataset = reader === null ? result.dataset : { ...result.dataset!, publicDataUrl: toFileUrl(datasetFile) };
  const updated = { ...result, artifacts: written, dataset, answer: withUrls(result, written) };
  await writeFile(path.join(directory, "result.json"), `${JSON.stringify(updated, null, 2)}\n`);
  return { result: updated, files };
}

/** Lists the figures and charts at their place in the artifact store. */
export function listStored(result: TurnResult): WrittenTurn["files"] {
  return result.artifacts
    .filter(({ url }) => url.startsWith("file:"))
    .map(({ url, title, kind }) => ({ what: title ?? kind, file: fileURLToPath(url) }));
}

/** Replaces the URLs in the answer with those of the written files. */
function withUrls({ answer, artifacts }: TurnResult, written: TurnResult["artifacts"]): string {
  return written.reduce((text, { contentHash, url }) => {
    const storedUrl = artifacts.find((one) => one.contentHash === contentHash)?.url ?? url;
    return text.replaceAll(storedUrl, url);
  }, answer);
}
