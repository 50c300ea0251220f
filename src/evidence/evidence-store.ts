import type { EvidenceRecord } from "./evidence-record.ts";
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
export type EvidenceFormat = EvidenceRecord["format"];
export type EvidenceShape = Readonly<EvidenceRecord["shape"]>;
export type PrecisionLoss = Readonly<NonNullable<EvidenceRecord["precisionLoss"]>>;

/** `sha256` is worked out when it is first asked for: hashing 50 MB takes a sixth of the time that parsing it does. */
export interface EvidenceItem extends Readonly<Omit<EvidenceRecord, "schemaVersion">> {
  readonly tenant: string;
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
