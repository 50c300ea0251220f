import { createHash, randomUUID } from "node:crypto";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import type { EvidenceBudget, EvidenceBytes, EvidenceItem, EvidenceStore, PreviewOptions, StepPreviewOptions } from "./contract.ts";
import { measureText } from "./measure-text.ts";
import { createMemoryBytes } from "./memory-bytes.ts";
import { nameGivenAlias, namePartAlias, nameToolAlias } from "./name-alias.ts";
import type { OutputPart } from "./output-part.ts";
import { buildPreview, type PreviewSource } from "./preview/build-preview.ts";
import { digest, type Digest } from "./preview/digest.ts";
import { previewStep } from "./preview/preview-step.ts";
import { readText } from "./read-text.ts";
import { readToolOutput } from "./read-tool-output.ts";
import { toJsonText } from "./to-json-text.ts";

export interface EvidenceStoreOptions {
  readonly conversationId?: string;
  readonly tenant?: string;
  readonly budget?: Partial<EvidenceBudget>;
  /** Where the bytes go; memory unless told. */
  readonly bytes?: EvidenceBytes;
  readonly now?: () => Date;
}

export const defaultEvidenceBudget: EvidenceBudget = { totalBytes: 1024 ** 3, previewBytes: 4096, stepBytes: 24_576 };

export function createEvidenceStore({
  conversationId = randomUUID(),
  tenant = "local",
  budget: asked = {},
  bytes: kept = createMemoryBytes(),
  now = () => new Date(),
}: EvidenceStoreOptions = {}): EvidenceStore {
  const budget = { ...defaultEvidenceBudget, ...asked };
  const items = new Map<string, EvidenceItem>();
  const sources = new Map<string, PreviewSource>();
  let totalBytes = 0;
  const isTaken = (alias: string): boolean => items.has(alias);

  /** All parts or none: nothing is kept before everything is known to fit. */
  function keep(alias: string, parts: readonly OutputPart[], facts: ItemFacts): EvidenceItem {
    const sizes = parts.map(sizeOf);
    claim(alias, sizes);
    const aliases = nameParts(alias, parts);
    const at = now().toISOString();
    const made = parts.map((part, index) => toSource({ part, bytes: sizes[index]!, alias: aliases[index]!, aliases, at, facts }));
    for (const [index, source] of made.entries()) {
      kept.put(source.item.alias, toKept(parts[index]!.body));
      totalBytes += sizes[index]!;
      items.set(source.item.alias, source.item);
      sources.set(source.item.alias, source);
    }
    return made[0]!.item;
  }

  function claim(alias: string, sizes: readonly number[]): void {
    const added = sizes.reduce((sum, size) => sum + size, 0);
    if (totalBytes + added > budget.totalBytes) throw full({ alias, added, seen: totalBytes + added, allowed: budget.totalBytes });
  }

  function nameParts(alias: string, parts: readonly OutputPart[]): string[] {
    const names = [alias];
    for (const { part } of parts.slice(1))
      names.push(namePartAlias({ of: alias, part, isTaken: (name) => isTaken(name) || names.includes(name) }));
    return names;
  }

  function toSource({ part, bytes, alias, aliases, at, facts }: NewItem): PreviewSource {
    let made = isReadLater(bytes, facts) ? undefined : digest(part);
    const read = (): Digest => (made ??= digest(part));
    const isMain = alias === aliases[0];
    let hash: string | undefined;
    const item: EvidenceItem = {
      alias,
      tenant,
      ...facts,
      at,
      get sha256() {
        hash ??= createHash("sha256").update(kept.get(alias)).digest("hex");
        return hash;
      },
      bytes,
      format: part.format,
      ...(part.mimeType === undefined ? {} : { mimeType: part.mimeType }),
      get shape() {
        return read().shape;
      },
      ...(part.precisionLoss === undefined ? {} : { precisionLoss: part.precisionLoss }),
      attachments: isMain ? aliases.slice(1) : [],
      ...(isMain ? {} : { partOf: aliases[0]! }),
      read: () => kept.get(alias),
    };
    return {
      item,
      get digest() {
        return read();
      },
      isStrictJson: part.isStrictJson === true,
    };
  }

  function sourceOf(alias: string): PreviewSource {
    const source = sources.get(alias);
    if (source === undefined) throw unknownAlias(alias, [...items.keys()]);
    return source;
  }

  return {
    tenant,
    conversationId,
    toolOutputsByAlias: items,
    get totalBytes() {
      return totalBytes;
    },
    add(output) {
      const alias = nameToolAlias(output.tool, isTaken);
      const isError = isErrorResult(output.output);
      const facts = { source: "tool", tool: output.tool, arguments: copy(output.arguments), ...(isError ? { isError } : {}) } as const;
      return keep(alias, readToolOutput(output), facts);
    },
    addResult: ({ json, from, arguments: given }) =>
      keep(nameToolAlias("result", isTaken), [readText(json)], { source: "result", tool: from, arguments: copy(given) }),
    addData: ({ name, format, bytes, mimeType }) =>
      keep(nameGivenAlias(name, isTaken), [readData({ format, bytes, mimeType })], { source: "data", tool: name, arguments: null }),
    get: (alias) => items.get(alias) ?? null,
    aliases: () => [...items.keys()],
    preview: (alias, { maxBytes = budget.previewBytes }: PreviewOptions = {}) => buildPreview(sourceOf(alias), { maxBytes }),
    previewStep: (aliases, { maxBytes = budget.stepBytes, maxBytesPerOutput = budget.previewBytes }: StepPreviewOptions = {}) =>
      previewStep(inOrder(aliases).map(sourceOf), { maxBytes, maxBytesPerOutput: Math.min(maxBytesPerOutput, maxBytes) }),
  };

  /** Oldest first, each once, whatever the order of the question. */
  function inOrder(aliases: readonly string[]): string[] {
    const asked = new Set(aliases);
    const known = [...items.keys()].filter((alias) => asked.has(alias));
    return [...known, ...[...asked].filter((alias) => !items.has(alias))];
  }
}

/** A small result of a cell is mostly read whole: what its previews are made of waits until one is asked for, and the cell's caller does not. */
function isReadLater(bytes: number, { source }: ItemFacts): boolean {
  return source === "result" && bytes <= 65_536;
}

type ItemFacts = Pick<EvidenceItem, "source" | "tool" | "arguments" | "isError">;

interface NewItem {
  readonly part: OutputPart;
  readonly bytes: number;
  readonly alias: string;
  readonly aliases: readonly string[];
  readonly at: string;
  readonly facts: ItemFacts;
}

function sizeOf({ body, bytes }: OutputPart): number {
  if (bytes !== undefined) return bytes;
  return typeof body === "string" ? (measureText(body).bytes ?? Buffer.byteLength(body)) : body.length;
}

/** Bytes are copied, so that whoever gave them can go on using them. */
function toKept(body: string | Uint8Array): string | Uint8Array {
  return typeof body === "string" ? body : Buffer.from(body);
}

function readData({
  format,
  bytes,
  mimeType,
}: {
  format: OutputPart["format"];
  bytes: Uint8Array;
  mimeType?: string | undefined;
}): OutputPart {
  const named = mimeType === undefined ? {} : { mimeType };
  if (format !== "json") return { part: "data", format, body: bytes, ...named };
  const read = readText(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
  return { ...read, format: "json", body: bytes, bytes: bytes.length, ...named };
}

function isErrorResult(output: unknown): true | undefined {
  return typeof output === "object" && output !== null && "isError" in output && output.isError === true ? true : undefined;
}

function copy(given: unknown): unknown {
  return given === undefined ? null : (JSON.parse(toJsonText(given).text) as unknown);
}

function full({ alias, added, seen, allowed }: { alias: string; added: number; seen: number; allowed: number }): SluiceError {
  return new SluiceError({
    code: "EVIDENCE_FULL",
    message: `${alias} has ${added} bytes; with it, the evidence of this conversation would have ${seen} bytes, ${allowed} are allowed.`,
    hint: "Ask the tool for less, start a new conversation, or raise the evidence budget totalBytes.",
    details: { alias, bytes: added, seen, allowed },
  });
}

function unknownAlias(alias: string, known: readonly string[]): UsageError {
  return new UsageError({
    code: "UNKNOWN_ALIAS",
    message: `There is no output named ${alias}; there are: ${known.join(", ") || "none"}.`,
    hint: "Use one of the aliases that are there.",
    details: { alias, known },
  });
}
