import { z } from "zod";
import type { BlobStore } from "../blobs/blob-store.ts";
import type { ReadChartRows } from "../interpreter/render-chart.ts";
import type { ToolError } from "../errors/tool-error.ts";
import type { EvidenceFormat, EvidenceItem, EvidenceStore, FileContent } from "../evidence/evidence-store.ts";
import { evidenceRecordSchema } from "../evidence/evidence-record.ts";

export type { Tables } from "./tables/create-tables.ts";

/**
 * Data that comes from files and from callers rather than from tools. A file becomes an alias; its bytes stay where they are until a cell, a page of
 * rows or a download needs them, and they are parsed inside a sandbox only. What is asked of a table (its schema, a page, a search) is asked of a
 * sandbox of its own that has the table parsed, so that neither the host nor a browser ever holds it whole as rows.
 */
export interface ConversationData {
  readonly evidence: EvidenceStore;
  /** Looks at the given folders again: files that are new become aliases. */
  refresh(): Promise<void>;
  /** `store_data {name, data | csv}`. */
  storeData(input: unknown): Promise<DataAnswer>;
  /** `list_data {aliases?}`. */
  listData(input?: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** `read_data {alias, offset?, limit?, columns?, filter?, search?, sort?}`: small pages of records, for a model. */
  readData(input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** The same question with larger pages, rows as arrays, for a program. */
  page(input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
  /** Columns with their types, shares of nulls and ranges, of the whole table. */
  schema(alias: string, options?: DataCallOptions): Promise<DataAnswer>;
  /** Rows of an alias that is no JSON, for `renderChart`. */
  readonly chartRows: ReadChartRows;
  addUpload(upload: OpenedUpload): EvidenceItem;
}

export interface DataCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** `json` is the text of an object. Send it as it is: integers past 2^53 are exact in it. */
export type DataAnswer = { readonly ok: true; readonly json: string } | { readonly ok: false; readonly toolError: ToolError };

/** What was given with `--data`, for all conversations of a process. */
export interface DataFiles {
  /** In the order in which they were given, files of a folder by path. */
  files(): readonly DataFile[];
  /** What of the given folders is no alias, and why; the last entry counts what a bound left out. */
  leftOut(): readonly LeftOut[];
  /** Walks the given folders again. */
  refresh(): Promise<void>;
}

export interface DataFile {
  /** What the alias is made from: the name without its ending. */
  readonly stem: string;
  /** The path as it was given or found, made printable. */
  readonly path: string;
  readonly format: EvidenceFormat;
  readonly content: FileContent;
}

export interface LeftOut {
  readonly path: string;
  readonly why: string;
}

const { sha256, bytes, format } = evidenceRecordSchema.shape;

/** An upload as it is kept: by what it holds, apart for each tenant. */
export const storedUploadSchema = z.object({ tenant: z.string(), sha256, bytes, fileName: z.string(), format });

export type StoredUpload = Readonly<z.infer<typeof storedUploadSchema>>;

export interface OpenedUpload extends StoredUpload {
  readonly content: FileContent;
}

export interface UploadStore {
  /** Takes it in, or nothing of it. The same bytes are kept once. */
  put(upload: NewUpload): Promise<OpenedUpload>;
  /** One that was kept before. Null when its bytes are not there any more. */
  open(upload: StoredUpload): Promise<OpenedUpload | null>;
  /** Where a tenant's uploads are, by their sha256. */
  blobsOf(tenant: string): BlobStore;
}

export interface NewUpload {
  readonly tenant: string;
  /** As the sender calls it; only its last part counts. */
  readonly fileName: string;
  readonly content: AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal | undefined;
}

/** A table, or a dataset, to be saved as a file. */
export interface TableDownload {
  readonly fileName: string;
  readonly contentType: string;
  /** Null when it is not known before the end. */
  readonly bytes: number | null;
  stream(): AsyncIterable<Uint8Array>;
}
