import { z } from "zod";
import type { BlobStore } from "../blobs/blob-store.ts";
import type { ToolError } from "../errors/tool-error.ts";
import { evidenceRecordSchema } from "../evidence/evidence-record.ts";
import type { EvidenceFormat, EvidenceItem, EvidenceStore, FileContent } from "../evidence/evidence-store.ts";
import type { ReaderOptions } from "../protocol/reader.ts";
import type { ReadChartRows } from "../interpreter/render-chart.ts";

/**
 * The data of a conversation that comes from files and callers instead of tools. Each file becomes an alias. Its bytes stay on disk until a cell, a page of
 * rows or a download needs them, and only a sandbox parses them. Schemas, pages and searches are computed in a sandbox that holds the parsed table, so the
 * host and the browser never hold all rows of a table.
 */
export interface ConversationData {
  readonly evidence: EvidenceStore;
  /** Scans the given folders again. New files become aliases. */
  refresh(): Promise<void>;
  /** `store_data {name, data | csv, reader?}`. CSV is read in a sandbox before it is stored. */
  storeData(input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** `list_data {aliases?}`. */
  listData(input?: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** `read_data {alias, offset?, limit?, columns?, filter?, search?, sort?}`: small pages of records, for a model. */
  readData(input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** Takes the same input as `readData`. Returns larger pages with rows as arrays, for a program. */
  page(input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** Returns the columns of the whole table with their types, shares of nulls and ranges. */
  schema(alias: string, options?: DataCallOptions): Promise<DataAnswer>;
  /** Reads the rows of an alias that is not JSON, for `renderChart`. */
  readonly chartRows: ReadChartRows;
  addUpload(upload: OpenedUpload): EvidenceItem;
}

export interface DataCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** `json` is the text of an object. Send it without parsing it: it contains integers above 2^53 exactly. */
export type DataAnswer = { readonly ok: true; readonly json: string } | { readonly ok: false; readonly toolError: ToolError };

/** The files and folders given with `--data`, shared by all conversations of a process. */
export interface DataFiles {
  /** In the order of the given paths; the files of a folder are sorted by path. */
  files(): readonly DataFile[];
  /** The parts of the given folders that did not become aliases, and why. */
  leftOut(): readonly LeftOut[];
  /** Scans the given folders again. */
  refresh(): Promise<void>;
}

export interface DataFile {
  /** The file name without its extension. The alias is derived from it. */
  readonly stem: string;
  /** The path as given or found, made printable. */
  readonly path: string;
  readonly format: EvidenceFormat;
  readonly content: FileContent;
  /** How to read it, as given with `file.csv?delimiter=%3B`. */
  readonly reader?: ReaderOptions | undefined;
  readonly readerExample?: string | undefined;
}

export interface LeftOut {
  readonly path: string;
  readonly why: string;
}

const { sha256, bytes, format, reader } = evidenceRecordSchema.shape;

/** The record of a stored upload. Its content is stored by hash, separately for each tenant. */
export const storedUploadSchema = z.object({ tenant: z.string(), sha256, bytes, fileName: z.string(), format, reader });

export type StoredUpload = Readonly<z.infer<typeof storedUploadSchema>>;

export interface OpenedUpload extends StoredUpload {
  readonly content: FileContent;
  readonly readerExample?: string | undefined;
}

export interface UploadStore {
  /** Stores an upload completely or not at all. The same content is stored once. */
  put(upload: NewUpload): Promise<OpenedUpload>;
  /** Opens a stored upload. Returns null if its content no longer exists. */
  open(upload: StoredUpload): Promise<OpenedUpload | null>;
  /** Returns the blob store with the uploads of a tenant, by sha256. */
  blobsOf(tenant: string): BlobStore;
}

export interface NewUpload {
  readonly tenant: string;
  /** The name that the client sent. Directories in it are ignored. */
  readonly fileName: string;
  readonly content: AsyncIterable<Uint8Array>;
  /** How to read a CSV-like file. What is not given is inferred. */
  readonly reader?: ReaderOptions | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A table or a dataset as a file. */
export interface TableDownload {
  readonly fileName: string;
  readonly contentType: string;
  /** Null if the size is not known in advance. */
  readonly bytes: number | null;
  stream(): AsyncIterable<Uint8Array>;
}
