import type { ReaderOptions, Reading } from "../protocol/reader.ts";
import type { EvidenceRecord } from "./evidence-record.ts";
import type { RowsAt, RowsQuestion } from "./rows-at.ts";

/**
 * Evidence: every tool output, complete, under an alias that is a Python name. It belongs to one conversation of one tenant. Items never change and are
 * never removed while the conversation exists. A model reads previews; Python reads the bytes.
 *
 * Each call gets one main alias (`get_price_1`):
 * - The structured content of an MCP result, as sent if the transport has its text. Texts that only repeat it are not kept.
 * - Without structured content: JSON text, exactly as sent. Several JSON texts become one JSON array, each as sent.
 * - Without JSON: the text. Several texts become one JSON array of strings.
 * Other parts of the result get aliases named after it: `get_price_1_text` (text beside data), `get_price_1_image`, `get_price_1_audio`,
 * `get_price_1_resource` (the second with `_2`), `get_price_1_links`, `get_price_1_other` (unknown content, as JSON).
 */
export interface EvidenceStore {
  readonly tenant: string;
  readonly conversationId: string;
  /** Size of all items. */
  readonly totalBytes: number;
  /** All items by alias, oldest first. A live view. */
  readonly toolOutputsByAlias: ReadonlyMap<string, EvidenceItem>;
  /** Keeps a tool output: all parts, or none if it throws EVIDENCE_FULL or CONVERSATION_FULL. Parses on the calling thread, which blocks it for large outputs; see `keep`. */
  add(output: ToolOutput): EvidenceItem;
  /** Keeps the result of a cell, the JSON text that the worker sent, as `result_1`. */
  addResult(result: CellResult): EvidenceItem;
  /** Keeps data with a name, such as a file or the input of `store_data`. The alias is the name itself if possible. */
  addData(data: NamedData): EvidenceItem;
  /** Adds a file by reference. It is neither read now nor counted towards the budget; each read returns its current content. */
  addFile(file: NamedFile): EvidenceItem;
  /** Like `add`, but reads large outputs in a worker thread. Use it in servers. */
  keep(output: ToolOutput): Promise<EvidenceItem>;
  keepResult(result: CellResult): Promise<EvidenceItem>;
  keepData(data: NamedData): Promise<EvidenceItem>;
  get(alias: string): EvidenceItem | null;
  aliases(): string[];
  /** A new store for the same conversation that has only the files of this one. */
  withFilesOnly(): EvidenceStore;
  /** The flat rows at a path inside a JSON item. Parses large items in a worker thread. Throws ALIAS_UNKNOWN. */
  rowsAt(alias: string, question: RowsQuestion): Promise<RowsAt>;
  /** The preview of one output for a model. Throws ALIAS_UNKNOWN. */
  preview(alias: string, options?: PreviewOptions): Preview;
  /**
   * The previews of one step, oldest first. If they exceed the budget, the oldest shrink first and lose rows before the schema; aliases stay. If the
   * aliases alone do not fit, the oldest become one list, with a count of those that it does not name. Throws if the budget is under 256 bytes.
   */
  previewStep(aliases: readonly string[], options?: StepPreviewOptions): Preview[];
}

/** How the bytes become a Python value. The sandbox uses the same names for input formats. */
export type EvidenceFormat = EvidenceRecord["format"];
export type EvidenceShape = Readonly<EvidenceRecord["shape"]>;
export type PrecisionLoss = Readonly<NonNullable<EvidenceRecord["precisionLoss"]>>;

/** `sha256` is computed on first access: hashing 50 MB takes a sixth of the time of parsing it. */
export interface EvidenceItem extends Readonly<Omit<EvidenceRecord, "schemaVersion">> {
  readonly tenant: string;
  /** Set for files added by reference. `bytes`, `sha256`, `shape` and `read()` then describe the current file. */
  readonly file?: FileContent;
  /** Shows how to give `reader`, in errors: text with `{}` in place of the options in URL form. */
  readonly readerExample?: string | undefined;
  /** The complete bytes. Do not modify them. */
  read(): Uint8Array;
}

/** A file that stays in its place and may change. The host never parses it: its shape and schema come from a sandbox. */
export interface FileContent {
  readonly kind: "file" | "upload";
  /** Changes whenever the bytes may have changed. Checks the file; throws if it is missing or not the file that was given. */
  version(): string;
  /** Size at the last check. */
  readonly bytes: number;
  readonly sha256: string;
  readonly shape: EvidenceShape;
  /** JSON texts of the schema, from full to short; empty until a sandbox has read the file. */
  readonly schema: readonly string[];
  /** How a sandbox read it; null until then, and for formats that can be read in one way only. */
  readonly reading: Reading | null;
  read(): Uint8Array;
  /** Stores what a sandbox found in the file. It is valid until the file changes. */
  learn(found: FileFindings): void;
}

export interface FileFindings {
  readonly version: string;
  readonly shape: EvidenceShape;
  readonly schema: readonly string[];
  readonly reading: Reading | null;
}

export interface NamedFile {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly content: FileContent;
  readonly reader?: ReaderOptions | undefined;
  readonly readerExample?: string | undefined;
}

export interface ToolOutput {
  readonly tool: string;
  readonly arguments?: unknown;
  /** An MCP result, text, bytes, or any value that can be written as JSON. */
  readonly output: unknown;
  /** The kind of `output`. Default: detected from its content. */
  readonly as?: "mcp" | "value";
  /** The text of `structuredContent` as sent, if the transport has it. It is kept instead of the parsed value. */
  readonly structuredJson?: string | undefined;
  /** A `ReadOutput` of an `OutputReader`. If set, it is kept, and `output` has only the small fields of the result. */
  readonly read?: object | undefined;
}

export interface CellResult {
  readonly json: string;
  /** The tool that ran the cell. */
  readonly from: string;
  readonly arguments?: unknown;
}

export interface NamedData {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly bytes: Uint8Array;
  readonly mimeType?: string;
  readonly reader?: ReaderOptions | undefined;
}

export interface PreviewOptions {
  /** Default: 4096. Minimum: 256. */
  readonly maxBytes?: number;
}

export interface StepPreviewOptions {
  /** Limit for all previews together. Default: 24576. */
  readonly maxBytes?: number;
  readonly maxBytesPerOutput?: number;
}

export interface Preview {
  /** Null for the list of several outputs. */
  readonly alias: string | null;
  /** Always valid JSON. Send it as text: parsing it would round integers past 2^53. */
  readonly json: string;
  readonly bytes: number;
  /** How much of the output it shows. */
  readonly detail: PreviewDetail;
}

export type PreviewDetail = "whole" | "rows" | "schema" | "counts" | "alias" | "list";

export interface EvidenceBudget {
  readonly totalBytes: number;
  readonly previewBytes: number;
  readonly stepBytes: number;
}

export const defaultEvidenceBudget: EvidenceBudget = { totalBytes: 1024 ** 3, previewBytes: 4096, stepBytes: 24_576 };
