import { hash } from "node:crypto";
import type { EvidenceFormat, EvidenceItem, EvidenceShape, FileContent, PrecisionLoss } from "./evidence-store.ts";
import type { EvidenceRecord } from "./evidence-record.ts";
import type { ReaderOptions } from "../protocol/reader.ts";
import type { OutputPart, ReadPart } from "./output-part.ts";
import { parseJsonText } from "../text/json.ts";
import type { PreviewSource } from "./preview/build-preview.ts";
import { digest, digestFile, type Digest } from "./preview/digest.ts";
import { readData } from "./read-tool-output.ts";

export type ItemFacts = Pick<EvidenceItem, "tenant" | "source" | "tool" | "arguments" | "isError" | "at" | "reader">;

interface NewItem {
  readonly part: OutputPart | ReadPart;
  readonly bytes: number;
  readonly alias: string;
  /** Aliases of all parts of the same output, the main one first. */
  readonly aliases: readonly string[];
  readonly facts: ItemFacts;
}

/** Texts up to this size are digested when their preview is first requested. Most results of cells and script calls are never previewed. */
const SMALL_BYTES = 65_536;
/** Longer texts are encoded in the next iteration of the event loop, so that the preview does not wait for it. */
const LONG_CHARACTERS = 1024 * 1024;
const noAttachments: readonly string[] = [];

/** One kept part of an output. A script may keep a thousand per second, so items are small and compute rarely used facts on demand. */
export class KeptItem implements EvidenceItem, PreviewSource {
  readonly alias: string;
  readonly tenant: string;
  readonly source: EvidenceItem["source"];
  readonly tool: string;
  readonly arguments: unknown;
  readonly at: string;
  readonly bytes: number;
  readonly format: EvidenceFormat;
  readonly attachments: readonly string[];
  declare readonly mimeType?: string;
  declare readonly precisionLoss?: PrecisionLoss;
  declare readonly isError?: true;
  declare readonly reader?: ReaderOptions;
  declare readonly partOf?: string;
  readonly isStrictJson: boolean;
  #body: string | Uint8Array;
  #sha256: string | undefined;
  #digest: Digest | undefined;

  constructor({ part, bytes, alias, aliases, facts }: NewItem) {
    this.alias = alias;
    this.tenant = facts.tenant;
    this.source = facts.source;
    this.tool = facts.tool;
    this.arguments = facts.arguments;
    this.at = facts.at;
    this.bytes = bytes;
    this.format = part.format;
    this.attachments = alias === aliases[0] && aliases.length > 1 ? aliases.slice(1) : noAttachments;
    if (part.mimeType !== undefined) this.mimeType = part.mimeType;
    if (part.precisionLoss !== undefined) this.precisionLoss = part.precisionLoss;
    if (facts.reader !== undefined) this.reader = facts.reader;
    if (facts.isError !== undefined) this.isError = facts.isError;
    if (alias !== aliases[0]) this.partOf = aliases[0]!;
    this.isStrictJson = part.isStrictJson === true;
    this.#body = toKept(part);
    if (this.#body.length > LONG_CHARACTERS) setImmediate(this.read);
    else this.read();
    if ("digest" in part) {
      this.#sha256 = part.sha256;
      this.#digest = part.digest;
    } else if (typeof part.body !== "string" || bytes > SMALL_BYTES) this.#digest = digest(part);
  }

  /** Converts text to a Buffer on first access: buffers are outside the JavaScript heap, whose size is limited. */
  readonly read = (): Uint8Array => {
    if (typeof this.#body === "string") this.#body = Buffer.from(this.#body);
    return this.#body;
  };

  get item(): EvidenceItem {
    return this;
  }

  get sha256(): string {
    this.#sha256 ??= hash("sha256", this.read());
    return this.#sha256;
  }

  get shape(): EvidenceShape {
    return this.digest.shape;
  }

  get digest(): Digest {
    this.#digest ??= digestLater(this.format, this.read());
    return this.#digest;
  }
}

/** Copies bytes of the caller, who may change them later. Bytes from the worker thread belong to the store already. */
function toKept(part: OutputPart | ReadPart): string | Uint8Array {
  return typeof part.body === "string" || "digest" in part ? part.body : Buffer.from(part.body);
}

function digestLater(format: EvidenceFormat, bytes: Uint8Array): Digest {
  const body = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return digest({ format, body, value: format === "json" ? parseJsonText(body)?.value : undefined });
}

/** A stored item of a conversation that continues in this process. */
export interface RestoredItem {
  readonly record: EvidenceRecord;
  /** Called only when the bytes are needed: for a preview, for Python or for a dataset. */
  read(): Uint8Array;
}

/** Reads nothing until needed, so that a conversation with much evidence opens quickly. */
export function toRestoredSource({ record, read }: RestoredItem, tenant: string): PreviewSource {
  const { schemaVersion: _, ...facts } = record;
  const item = { ...facts, arguments: facts.arguments ?? null, tenant, read } as EvidenceItem;
  let part: OutputPart | undefined;
  let cachedDigest: Digest | undefined;
  const readPart = (): OutputPart => (part ??= readData({ format: item.format, bytes: read() }));
  return {
    item,
    get digest() {
      cachedDigest ??= digest(readPart());
      return cachedDigest;
    },
    get isStrictJson() {
      return item.format === "json" && readPart().isStrictJson === true;
    },
  };
}

/** A file added by reference. Every access to its facts asks the file. */
export function toFileSource(
  facts: Pick<EvidenceItem, "alias" | "tenant" | "tool" | "format" | "at" | "reader" | "readerExample">,
  content: FileContent,
): PreviewSource {
  const item: EvidenceItem = {
    ...facts,
    source: "data",
    arguments: null,
    get sha256() {
      return content.sha256;
    },
    get bytes() {
      return content.bytes;
    },
    get shape() {
      return content.shape;
    },
    attachments: [],
    file: content,
    read: () => content.read(),
  };
  return {
    item,
    get digest() {
      return digestFile(content);
    },
    isStrictJson: false,
  };
}
