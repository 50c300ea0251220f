import { randomUUID } from "node:crypto";
import { isRecord } from "../text/json.ts";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import {
  type CellResult,
  defaultEvidenceBudget,
  type EvidenceBudget,
  type EvidenceItem,
  type EvidenceStore,
  type NamedData,
  type PreviewOptions,
  type StepPreviewOptions,
  type ToolOutput,
} from "./evidence-store.ts";
import { type ItemFacts, KeptItem, type RestoredItem, toFileSource, toRestoredSource } from "./kept-item.ts";
import { measureText, toJsonText } from "./to-json-text.ts";
import { type OutputPart, ReadOutput, type ReadPart } from "./output-part.ts";
import { buildPreview, type PreviewSource } from "./preview/build-preview.ts";
import { previewStep } from "./preview/preview-step.ts";
import { createOutputReader, type OutputReader } from "./reading/create-output-reader.ts";
import { readData, readText, readToolOutput } from "./read-tool-output.ts";
import { isReservedPythonName } from "../protocol/python-names.ts";

export interface EvidenceStoreOptions {
  readonly conversationId?: string;
  readonly tenant?: string;
  readonly budget?: Partial<EvidenceBudget>;
  /** Reads what is large; its own unless told. */
  readonly reader?: OutputReader;
  /** What an earlier process kept, oldest first; it counts against the budget like anything else. */
  readonly restored?: readonly RestoredItem[];
  readonly now?: () => Date;
}

export function createEvidenceStore({
  conversationId = randomUUID(),
  tenant = "local",
  budget: asked = {},
  reader = createOutputReader(),
  restored = [],
  now = () => new Date(),
}: EvidenceStoreOptions = {}): EvidenceStore {
  const budget = { ...defaultEvidenceBudget, ...asked };
  const items = new Map<string, EvidenceItem>();
  const sources = new Map<string, PreviewSource>();
  let totalBytes = 0;
  const isTaken = (alias: string): boolean => items.has(alias);
  const nameOutput = createToolAliases(isTaken);
  for (const source of restored.map((one) => toRestoredSource(one, tenant))) {
    totalBytes += source.item.bytes;
    items.set(source.item.alias, source.item);
    sources.set(source.item.alias, source);
  }

  /** All parts or none: nothing is kept before everything is known to fit. */
  function put(alias: string, parts: readonly Part[], given: Omit<ItemFacts, "tenant" | "at">): EvidenceItem {
    const sizes = parts.map(sizeOf);
    claim(alias, sizes);
    const aliases = nameParts(alias, parts);
    const facts = { ...given, tenant, at: now().toISOString() };
    const made = parts.map((part, index) => new KeptItem({ part, bytes: sizes[index]!, alias: aliases[index]!, aliases, facts }));
    for (const item of made) {
      totalBytes += item.bytes;
      items.set(item.alias, item);
      sources.set(item.alias, item);
    }
    return made[0]!;
  }

  function claim(alias: string, sizes: readonly number[]): void {
    const added = sizes.reduce((sum, size) => sum + size, 0);
    if (totalBytes + added > budget.totalBytes) throw full({ alias, added, seen: totalBytes + added, allowed: budget.totalBytes });
  }

  function nameParts(alias: string, parts: readonly Part[]): string[] {
    const names = [alias];
    for (const { part } of parts.slice(1))
      names.push(namePartAlias({ of: alias, part, isTaken: (name) => isTaken(name) || names.includes(name) }));
    return names;
  }

  function add(output: ToolOutput): EvidenceItem {
    const alias = nameOutput(output.tool);
    const error = isRecord(output.output) && output.output["isError"] === true ? ({ isError: true } as const) : {};
    const facts = { source: "tool", tool: output.tool, arguments: copy(output.arguments), ...error } as const;
    return put(alias, output.read instanceof ReadOutput ? output.read.parts : readToolOutput(output), facts);
  }

  function addResult({ json, from, arguments: given }: CellResult, read: ReadOutput | null = null): EvidenceItem {
    const facts = { source: "result", tool: from, arguments: copy(given) } as const;
    return put(nameOutput("result"), read?.parts ?? [readText(json)], facts);
  }

  function addData(data: NamedData, read: ReadOutput | null = null): EvidenceItem {
    const facts = { source: "data", tool: data.name, arguments: null } as const;
    return put(nameGivenAlias(data.name, isTaken), read?.parts ?? [readData(data)], facts);
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
    add,
    addResult: (result) => addResult(result),
    addData: (data) => addData(data),
    async keep(output) {
      return add(await reader.readOutput(output));
    },
    async keepResult(result) {
      return addResult(result, await reader.readResult(result));
    },
    async keepData(data) {
      return addData(data, await reader.readData(data));
    },
    addFile({ name, format, content }) {
      const source = toFileSource({ alias: nameGivenAlias(name, isTaken), tenant, tool: name, format, at: now().toISOString() }, content);
      items.set(source.item.alias, source.item);
      sources.set(source.item.alias, source);
      return source.item;
    },
    get: (alias) => items.get(alias) ?? null,
    aliases: () => [...items.keys()],
    rowsAt: async (alias, question) => await reader.readRows(sourceOf(alias).item.read(), question),
    preview: (alias, { maxBytes = budget.previewBytes }: PreviewOptions = {}) => buildPreview(sourceOf(alias), maxBytes),
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

type Part = OutputPart | ReadPart;

function sizeOf(part: Part): number {
  const { body } = part;
  if ("bytes" in part && part.bytes !== undefined) return part.bytes;
  return typeof body === "string" ? (measureText(body) ?? Buffer.byteLength(body)) : body.length;
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
    code: "ALIAS_UNKNOWN",
    message: `There is no output named ${alias}; there are: ${known.join(", ") || "none"}.`,
    hint: "Use one of the aliases that are there.",
    details: { alias, known },
  });
}

const MAX_STEM_CHARACTERS = 48;

/**
 * Names outputs of tools in one conversation: `get_price` → `get_price_1`, then `get_price_2`. The server of a `server__tool` name is left out: the item says
 * the tool's full name. The count goes on from the last number, which is given again when nothing was kept under it.
 */
export function createToolAliases(isTaken: (alias: string) => boolean): (tool: string) => string {
  const last = new Map<string, number>();
  return (tool) => {
    const stem = toToolStem(tool);
    const number = firstFree(stem, last.get(stem) ?? 1, isTaken);
    last.set(stem, number);
    return `${stem}_${number}`;
  };
}

function toToolStem(tool: string): string {
  return toStem(withoutServer(tool), "output");
}

/** A name that somebody chose: itself where Python and the conversation allow it, else the nearest that they do. */
export function nameGivenAlias(name: string, isTaken: (alias: string) => boolean): string {
  const stem = toStem(name, "data");
  if (isFree(stem, isTaken)) return stem;
  const spare = isReservedPythonName(stem) ? `${stem}_data` : stem;
  if (isFree(spare, isTaken)) return spare;
  return `${spare}_${firstFree(spare, 2, isTaken)}`;
}

/** A further part of an output: `get_price_1_image`, then `get_price_1_image_2`. */
export function namePartAlias({ of, part, isTaken }: { of: string; part: string; isTaken: (alias: string) => boolean }): string {
  if (isFree(`${of}_${part}`, isTaken)) return `${of}_${part}`;
  return `${of}_${part}_${firstFree(`${of}_${part}`, 2, isTaken)}`;
}

function firstFree(stem: string, from: number, isTaken: (alias: string) => boolean): number {
  let number = from;
  while (!isFree(`${stem}_${number}`, isTaken)) number += 1;
  return number;
}

function withoutServer(tool: string): string {
  const at = tool.indexOf("__");
  return at > 0 && /[^_]/.test(tool.slice(at)) ? tool.slice(at + 2) : tool;
}

/** ASCII only: Python would also take other letters, but folds some of them, so that two names could be one. */
function toStem(name: string, fallback: string): string {
  const plain = name.normalize("NFKD").replaceAll(/\p{M}/gu, "");
  const words = plain.replaceAll(/[^A-Za-z0-9]+/g, "_").slice(0, MAX_STEM_CHARACTERS);
  const stem = words.replace(/^_+/, "").replace(/_+$/, "");
  if (stem === "") return fallback;
  return /^\d/.test(stem) ? `${fallback}_${stem}` : stem;
}

function isFree(alias: string, isTaken: (alias: string) => boolean): boolean {
  return !isReservedPythonName(alias) && !isTaken(alias);
}
