import { z } from "zod";
import { toStoredBytes, type ArtifactStore } from "../../artifacts/artifact-store.ts";
import type { History } from "../../history/history.ts";
import type { ImageArtifact, StoredBytes } from "../../protocol/artifact.ts";
import { artifactReferenceSchema, toArtifactReference, type ArtifactReference } from "../../protocol/artifact-reference.ts";
import type { ChartRow, ChartSpec } from "../../protocol/chart-spec.ts";
import type { Figure } from "../../protocol/figure.ts";
import { readFigure } from "../../protocol/read-figure.ts";
import { isRecord } from "../../text/json.ts";
import type { Log } from "./create-log.ts";
import type { TenantStores } from "./create-tenant-stores.ts";

/**
 * Moves the data of artifacts from rows of older versions into the artifact store, one artifact at a time. Can be interrupted at any point: the next call
 * goes on. A row that cannot be migrated stays as it is, is logged, and is tried again by the next call.
 */
export async function migrateArtifacts(
  history: Pick<History, "olderArtifacts">,
  storesOf: (tenant: string) => Pick<TenantStores, "artifactsFor">,
  log: Pick<Log, "info" | "error">,
): Promise<void> {
  let rows = 0;
  for (const row of history.olderArtifacts.rows()) {
    const store = storesOf(row.tenant).artifactsFor(row.turnId);
    try {
      await history.olderArtifacts.migrate(row, (json) => migrateArtifact(JSON.parse(json), store));
      rows += 1;
    } catch (error) {
      log.error("row_not_migrated", { turn: row.turnId, row: row.kind, number: row.number, reason: (error as Error).message });
    }
  }
  if (rows === 0) return;
  log.info("artifacts_migrated", { rows });
  try {
    history.olderArtifacts.compact();
  } catch (error) {
    log.error("history_not_compacted", { reason: (error as Error).message });
  }
}

const place = { schemaVersion: z.literal(1), contentHash: z.string(), url: z.string(), title: z.string().optional() };
/** What is read of an older artifact. Its texts, spec and rows may break rules of this version. */
const olderArtifactSchema = z.discriminatedUnion("kind", [
  z.object({
    ...place,
    kind: z.literal("image"),
    alt: z.string(),
    bytes: z.int(),
    width: z.int(),
    height: z.int(),
    figure: z.unknown().optional(),
  }),
  z.object({ ...place, kind: z.literal("chart"), spec: z.custom<ChartSpec>(hasSeries), data: z.custom<ChartRow[]>(Array.isArray) }),
]);

type OlderImage = Extract<z.infer<typeof olderArtifactSchema>, { kind: "image" }>;
type OlderChart = Extract<z.infer<typeof olderArtifactSchema>, { kind: "chart" }>;

function hasSeries(spec: unknown): boolean {
  return isRecord(spec) && Array.isArray(spec["series"]);
}

async function migrateArtifact(artifact: unknown, store: ArtifactStore): Promise<ArtifactReference> {
  const { data: reference } = artifactReferenceSchema.safeParse(artifact);
  if (reference !== undefined) return reference;
  const { data: older, error } = olderArtifactSchema.safeParse(artifact);
  if (error !== undefined) throw new Error(`It has an artifact of an unknown form: ${z.prettifyError(error)}`);
  return older.kind === "chart" ? await migrateChart(older, store) : await migrateImage(older, store);
}

/** The store has the spec and the rows already, unless their file was lost. */
async function migrateChart(chart: OlderChart, store: ArtifactStore): Promise<ArtifactReference> {
  const { contentHash, url, spec, data } = chart;
  const stored = await store.get(contentHash, "json").catch(() => null);
  const bytes = stored === null ? await storeJson({ spec, data }, store) : { contentHash, url, bytes: stored.length };
  return toArtifactReference({ ...chart, ...bytes });
}

async function migrateImage({ figure: data, ...image }: OlderImage, store: ArtifactStore): Promise<ArtifactReference> {
  if (data === undefined) return toArtifactReference(image);
  const figure = readOlderFigure(data);
  const migrated: ImageArtifact = { ...image, figureData: await storeJson(figure ?? data, store, true) };
  return toArtifactReference(figure === null ? migrated : { ...migrated, figure });
}

/** Null for data that no version understands. They are kept as they are. */
function readOlderFigure(data: unknown): Figure | null {
  try {
    return readFigure(data);
  } catch {
    return null;
  }
}

async function storeJson(value: unknown, store: ArtifactStore, isFigureData = false): Promise<StoredBytes> {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return toStoredBytes(await store.put({ bytes, type: "json", isFigureData }));
}
