import type { EvidenceFormat, EvidenceItem, EvidenceShape } from "../evidence-store.ts";

/**
 * The canonical dataset of a turn: everything that its answer rests on, as one JSON document that is named by its own sha256. Kept is a manifest: the text around
 * the outputs, and the hash of each. The document is composed when it is read, byte for byte the same each time.
 */
export interface DatasetStore {
  /** Writes it, or finds that the same is there. Rejects with STORAGE_UNAVAILABLE, and then nothing is half-written. */
  put(dataset: Dataset): Promise<StoredDataset>;
  /** Null when there is none of this hash. */
  open(hash: string): Promise<DatasetReader | null>;
}

export interface Dataset {
  /** Goes first into the document, as it is. Has a JSON form. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tool outputs, data and results, in the order in which they came. */
  readonly items: readonly EvidenceItem[];
  /** What was drawn from them: chart rows among it. */
  readonly artifacts: readonly DatasetArtifact[];
}

/** An artifact as it was published. Of charts, `data` are its rows. */
export interface DatasetArtifact {
  readonly kind: "image" | "chart";
  readonly contentHash: string;
  readonly title?: string | undefined;
  /** It was published, and an edit took its place. */
  readonly isReplaced?: boolean;
  readonly data?: readonly Readonly<Record<string, unknown>>[];
}

export interface StoredDataset {
  readonly datasetId: string;
  readonly hash: string;
  /** Of the document. */
  readonly bytes: number;
  readonly url: string;
}

/** Something in the document that has rows. */
export interface DatasetTable {
  /** The alias, or `chart_1`. */
  readonly name: string;
  readonly format: EvidenceFormat;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
  readonly rows: number | null;
}

export interface DatasetReader {
  readonly hash: string;
  readonly bytes: number;
  readonly url: string;
  readonly tables: readonly DatasetTable[];
  /** The document, whole, in pieces. */
  stream(): AsyncIterable<Uint8Array>;
  /** One table's bytes in its own format, as they were kept. Null when there is no such table. */
  readTable(name: string): Promise<Uint8Array | null>;
}

/** How a body stands in the document: JSON as it is, text as a JSON string, bytes as base64 in one. */
export type BodyEncoding = "json" | "text" | "base64";

/** Of Parquet and Excel only Python knows the rows. */
export function hasRows({ shape, format }: { shape: Pick<EvidenceShape, "kind">; format: EvidenceFormat }): boolean {
  return ["records", "array", "map", "table"].includes(shape.kind) || format === "parquet" || format === "xlsx";
}
