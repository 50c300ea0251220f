import type { ReaderOptions } from "../../protocol/reader.ts";
import type { EvidenceFormat, EvidenceItem, EvidenceShape } from "../evidence-store.ts";

/**
 * Stores the dataset of a turn: everything that its answer is based on, as one JSON document that is named by its own sha256. Stored are the outputs and
 * a manifest: the text around the outputs, and the hash of each. Reading composes the document, byte for byte the same each time.
 */
export interface DatasetStore {
  /** Stores the dataset, unless it is already stored. Rejects with STORAGE_UNAVAILABLE; a manifest is written only after all outputs. */
  put(dataset: Dataset): Promise<StoredDataset>;
  /** Null if there is no dataset with this hash. */
  open(hash: string): Promise<DatasetReader | null>;
}

export interface Dataset {
  /** JSON fields at the start of the document. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tool outputs, data and results, oldest first. */
  readonly items: readonly EvidenceItem[];
  readonly artifacts: readonly DatasetArtifact[];
}

/** A published artifact. `data` are the rows of a chart, `figure` are the data behind a picture. */
export interface DatasetArtifact {
  readonly kind: "image" | "chart";
  readonly contentHash: string;
  readonly title?: string | undefined;
  /** Whether an edit replaced it. */
  readonly isReplaced?: boolean;
  readonly data?: readonly Readonly<Record<string, unknown>>[];
  readonly figure?: object | undefined;
}

export interface StoredDataset {
  readonly datasetId: string;
  readonly hash: string;
  /** Size of the document. */
  readonly bytes: number;
  readonly url: string;
}

/** A value in the document that has rows. */
export interface DatasetTable {
  /** The alias, or `chart_1`. */
  readonly name: string;
  readonly format: EvidenceFormat;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
  readonly rows: number | null;
  /** How to read a CSV-like table, as given. */
  readonly reader?: ReaderOptions | undefined;
}

export interface DatasetReader {
  readonly hash: string;
  readonly bytes: number;
  readonly url: string;
  readonly tables: readonly DatasetTable[];
  /** The whole document, in chunks. */
  stream(): AsyncIterable<Uint8Array>;
  /** The bytes of one table in its own format. Null if there is no such table. */
  readTable(name: string): Promise<Uint8Array | null>;
}

/** How a value is written in the document: JSON as it is, text as a JSON string, bytes as base64 in a JSON string. */
export type BodyEncoding = "json" | "text" | "base64";

/** Only Python can count the rows of Parquet and Excel files, so they always count as tables. */
export function hasRows({ shape, format }: { shape: Pick<EvidenceShape, "kind">; format: EvidenceFormat }): boolean {
  return ["records", "array", "map", "table"].includes(shape.kind) || format === "parquet" || format === "xlsx";
}
