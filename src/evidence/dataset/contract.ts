import type { EvidenceFormat, EvidenceItem, EvidenceShape } from "../contract.ts";

/**
 * The canonical dataset of a turn: everything that its answer rests on, in one JSON document that is written once and named by its own sha256. It holds
 * every output whole, so it needs nothing beside it. A store gives it an address; tables of it can be had as CSV and as Parquet.
 */
export interface DatasetStore {
  /** Writes it, or finds that the same is there. Rejects with STORAGE_UNAVAILABLE, and then nothing is half-written. */
  put(dataset: Dataset): Promise<StoredDataset>;
  /** Null when there is none of this hash. */
  open(hash: string): Promise<DatasetReader | null>;
  /** What was made from a dataset and can be made again, by a name like `get_price_1.parquet`. Null when it was not made yet. */
  readDerived(hash: string, name: string): Promise<Uint8Array | null>;
  keepDerived(hash: string, name: string, bytes: Uint8Array): Promise<void>;
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

/** Where each body is in the document, so that one table can be read without reading all. */
export interface DatasetIndex {
  readonly schemaVersion: 1;
  readonly bytes: number;
  readonly entries: readonly DatasetIndexEntry[];
}

export interface DatasetIndexEntry {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly shape: Pick<EvidenceShape, "kind" | "rows" | "path">;
  /** How the body stands in the document: JSON as it is, text as a JSON string, bytes as base64 in one. */
  readonly encoding: "json" | "text" | "base64";
  readonly offset: number;
  readonly length: number;
}
