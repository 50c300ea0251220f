import { createHash } from "node:crypto";
import type { EvidenceBytes, EvidenceFormat, EvidenceItem, EvidenceShape, PrecisionLoss } from "./contract.ts";
import type { OutputPart, ReadPart } from "./output-part.ts";
import { parseJsonText } from "./parse-json-text.ts";
import type { PreviewSource } from "./preview/build-preview.ts";
import { digest, type Digest } from "./preview/digest.ts";

export type ItemFacts = Pick<EvidenceItem, "tenant" | "source" | "tool" | "arguments" | "isError" | "at">;

interface NewItem {
  readonly part: OutputPart | ReadPart;
  readonly bytes: number;
  /** Of this part, and of all parts of the same output, the main one first. */
  readonly alias: string;
  readonly aliases: readonly string[];
  readonly facts: ItemFacts;
  readonly kept: EvidenceBytes;
}

/** A small text waits until somebody asks for its preview: most results of cells and of calls in a script are never looked at this way. */
const SMALL_BYTES = 65_536;
const NONE: readonly string[] = [];

/** One part of an output. A script may keep a thousand of them within a second, so an item is small, and what is seldom asked for is worked out when it is. */
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
  declare readonly partOf?: string;
  readonly isStrictJson: boolean;
  readonly read: () => Uint8Array;
  #sha256: string | undefined;
  #digest: Digest | undefined;

  constructor({ part, bytes, alias, aliases, facts, kept }: NewItem) {
    this.alias = alias;
    this.tenant = facts.tenant;
    this.source = facts.source;
    this.tool = facts.tool;
    this.arguments = facts.arguments;
    this.at = facts.at;
    this.bytes = bytes;
    this.format = part.format;
    this.attachments = alias === aliases[0] && aliases.length > 1 ? aliases.slice(1) : NONE;
    if (part.mimeType !== undefined) this.mimeType = part.mimeType;
    if (part.precisionLoss !== undefined) this.precisionLoss = part.precisionLoss;
    if (facts.isError !== undefined) this.isError = facts.isError;
    if (alias !== aliases[0]) this.partOf = aliases[0]!;
    this.isStrictJson = part.isStrictJson === true;
    this.read = () => kept.get(alias);
    if ("digest" in part) {
      this.#sha256 = part.sha256;
      this.#digest = part.digest;
    } else if (typeof part.body !== "string" || bytes > SMALL_BYTES) this.#digest = digest(part);
  }

  get item(): EvidenceItem {
    return this;
  }

  get sha256(): string {
    this.#sha256 ??= createHash("sha256").update(this.read()).digest("hex");
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

function digestLater(format: EvidenceFormat, bytes: Uint8Array): Digest {
  const body = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return digest({ format, body, value: format === "json" ? parseJsonText(body)?.value : undefined });
}
