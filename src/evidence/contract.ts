import type { RowsAt, RowsQuestion } from "./rows-at.ts";

/**
 * Evidence: every output of a tool, whole, under a name that Python can use. It belongs to one conversation of one tenant; nothing in it changes
 * and nothing leaves it while the conversation lives. A model reads previews, Python reads the bytes.
 *
 * One call gives one alias (`get_price_1`), whatever it was made of:
 * - The structured part of an MCP result comes first, as it was sent where a transport has its text. Text that says the same again is not kept twice.
 * - Without one, JSON text is kept exactly as sent. Several texts that are all JSON become one JSON array of them, each as sent.
 * - Else text. Several plain texts become one JSON array of strings.
 * What else the result holds gets an alias of its own, named after the first: `get_price_1_text` (words beside data), `get_price_1_image`,
 * `get_price_1_audio`, `get_price_1_resource` (each one, the second with `_2`), `get_price_1_links`, `get_price_1_other` (parts of a kind we do not know, as JSON).
 */
export interface EvidenceStore {
  readonly tenant: string;
  readonly conversationId: string;
  /** What is kept in all. */
  readonly totalBytes: number;
  /** Every output of the conversation by alias, oldest first. A live view. */
  readonly toolOutputsByAlias: ReadonlyMap<string, EvidenceItem>;
  /** Keeps one output of a tool, all parts or none. Throws EVIDENCE_FULL when it does not fit. Reads it at once: 50 MB hold up whoever shares the thread. */
  add(output: ToolOutput): EvidenceItem;
  /** Keeps the result of a cell, as the JSON text that the worker sent, as `result_1`. */
  addResult(result: CellResult): EvidenceItem;
  /** Keeps data that was given a name: a file, or what `store_data` was told. The name itself is the alias where it can be one. */
  addData(data: NamedData): EvidenceItem;
  /** Knows of a file under its name. Nothing of it is read or counted as kept; its alias reads it where it is, as it is then. */
  addFile(file: NamedFile): EvidenceItem;
  /** As `add`, and what is large is read in a thread. A host that serves others as well uses this. */
  keep(output: ToolOutput): Promise<EvidenceItem>;
  keepResult(result: CellResult): Promise<EvidenceItem>;
  keepData(data: NamedData): Promise<EvidenceItem>;
  get(alias: string): EvidenceItem | null;
  aliases(): string[];
  /** The flat rows at a path inside of JSON that is kept; what is large is parsed in a thread. Throws ALIAS_UNKNOWN. */
  rowsAt(alias: string, question: RowsQuestion): Promise<RowsAt>;
  /** What a model reads of one output. Throws ALIAS_UNKNOWN. */
  preview(alias: string, options?: PreviewOptions): Preview;
  /**
   * What a model reads in one step, oldest first. When it is too much, the oldest are cut down first: rows go before the schema, aliases stay. When
   * the aliases alone are too much, the oldest become one list of them, with a count of those that it has no room for. Throws only when the budget is under 256 bytes.
   */
  previewStep(aliases: readonly string[], options?: StepPreviewOptions): Preview[];
}

/** How the bytes become a Python value. These are the sandbox's names of input formats. */
export type EvidenceFormat = "json" | "jsonl" | "csv" | "tsv" | "parquet" | "xlsx" | "text" | "bytes";

export interface EvidenceItem {
  readonly alias: string;
  readonly tenant: string;
  readonly source: "tool" | "result" | "data";
  /** The tool's full name; of a result the tool that ran the cell; of data the name it was given. */
  readonly tool: string;
  readonly arguments: unknown;
  /** ISO 8601. */
  readonly at: string;
  /** Of the bytes. Worked out when it is first asked for: hashing 50 MB takes a sixth of the time that parsing it does. */
  readonly sha256: string;
  readonly bytes: number;
  readonly format: EvidenceFormat;
  readonly mimeType?: string;
  readonly shape: EvidenceShape;
  /** There when the bytes may not be what the tool meant, because only a parsed value reached us. */
  readonly precisionLoss?: PrecisionLoss;
  /** The tool said that this output is an error. */
  readonly isError?: true;
  /** Aliases of the other parts of the same output. */
  readonly attachments: readonly string[];
  /** The alias of the output that this one is a part of. */
  readonly partOf?: string;
  /** There when the bytes stay in a file: `bytes`, `sha256`, `shape` and `read()` are then of the file as it is. */
  readonly file?: FileContent;
  /** The whole, byte for byte. Do not write to it. */
  read(): Uint8Array;
}

/** Bytes that stay where they are until somebody needs them, and may change there. They are never parsed on the host: what is known of them was learnt in a sandbox. */
export interface FileContent {
  readonly kind: "file" | "upload";
  /** Another text whenever the bytes may be others. Looks at the file; throws when it is gone or no longer what was given. */
  version(): string;
  /** As of the last look. */
  readonly bytes: number;
  readonly sha256: string;
  readonly shape: EvidenceShape;
  /** JSON texts of the schema, from full to terse; none before a sandbox has read it. */
  readonly schema: readonly string[];
  read(): Uint8Array;
  /** Takes what a sandbox found in it. It counts as long as the file stays as it was. */
  learn(found: FileFindings): void;
}

export interface FileFindings {
  readonly version: string;
  readonly shape: EvidenceShape;
  readonly schema: readonly string[];
}

export interface NamedFile {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly content: FileContent;
}

export interface ToolOutput {
  readonly tool: string;
  readonly arguments?: unknown;
  /** An MCP result, text, bytes, or any value that has a JSON form. */
  readonly output: unknown;
  /** Says what `output` is when it should not be told from its looks. */
  readonly as?: "mcp" | "value";
  /** The text of `structuredContent`, from a transport that still has it: kept instead of the parsed value. */
  readonly structuredJson?: string | undefined;
  /** A `ReadOutput`: what an `OutputReader` has read already. It is what is kept then; `output` has only what is left beside it. */
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
}

export interface EvidenceShape {
  /** `records`: rows are objects. `array`: rows are anything else. `map`: many like values by key. `table`: csv or tsv. */
  readonly kind: "records" | "array" | "map" | "table" | "object" | "scalar" | "text" | "bytes";
  /** Exact. Null where there are no rows, or where counting them takes Python. */
  readonly rows: number | null;
  /** Names of columns, in the order in which they came up; the first 300 of `columnCount`. */
  readonly columns: readonly string[];
  readonly columnCount: number;
  /** Rows that were not looked at may have more. */
  readonly columnsFromSample: boolean;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
  /** Of text. */
  readonly lines?: number;
  readonly characters?: number;
}

/** Counts of what a parsed value cannot vouch for. Decimals that were rounded before they reached us cannot be told and are not counted. */
export interface PrecisionLoss {
  readonly integersPast2To53: number;
  readonly nonFinite: number;
  /** Values without a JSON form: functions, maps, text with halves of characters. */
  readonly unrepresentable: number;
}

export interface PreviewOptions {
  /** 4096 unless told, at least 256. */
  readonly maxBytes?: number;
}

export interface StepPreviewOptions {
  /** Of all together: 24576 unless told. */
  readonly maxBytes?: number;
  readonly maxBytesPerOutput?: number;
}

export interface Preview {
  /** Null for the list that stands for several outputs of a step. */
  readonly alias: string | null;
  /** Valid JSON, always. Send it as text: parsing it would round integers past 2^53 that are exact here. */
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
