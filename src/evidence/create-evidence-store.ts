import { randomUUID } from "node:crypto";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import type {
  CellResult,
  EvidenceBudget,
  EvidenceBytes,
  EvidenceItem,
  EvidenceStore,
  NamedData,
  PreviewOptions,
  StepPreviewOptions,
  ToolOutput,
} from "./contract.ts";
import { toFileSource } from "./file-source.ts";
import { KeptItem, type ItemFacts } from "./kept-item.ts";
import { measureText } from "./measure-text.ts";
import { createMemoryBytes } from "./memory-bytes.ts";
import { createToolAliases, nameGivenAlias, namePartAlias } from "./name-alias.ts";
import type { OutputPart, ReadPart } from "./output-part.ts";
import { buildPreview, type PreviewSource } from "./preview/build-preview.ts";
import { previewStep } from "./preview/preview-step.ts";
import { readData } from "./read-data.ts";
import { createOutputReader, type OutputReader } from "./reading/create-output-reader.ts";
import { ReadOutput } from "./reading/read-output.ts";
import { readText } from "./read-text.ts";
import { readToolOutput } from "./read-tool-output.ts";
import { toRestoredSource, type RestoredItem } from "./restored-source.ts";
import { toJsonText } from "./to-json-text.ts";

export interface EvidenceStoreOptions {
  readonly conversationId?: string;
  readonly tenant?: string;
  readonly budget?: Partial<EvidenceBudget>;
  /** Where the bytes go; memory unless told. */
  readonly bytes?: EvidenceBytes;
  /** Reads what is large; its own unless told. */
  readonly reader?: OutputReader;
  /** What an earlier process kept, oldest first; it counts against the budget like anything else. */
  readonly restored?: readonly RestoredItem[];
  readonly now?: () => Date;
}

const defaultEvidenceBudget: EvidenceBudget = { totalBytes: 1024 ** 3, previewBytes: 4096, stepBytes: 24_576 };

export function createEvidenceStore({
  conversationId = randomUUID(),
  tenant = "local",
  budget: asked = {},
  bytes: kept = createMemoryBytes(),
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
    const made = parts.map((part, index) => new KeptItem({ part, bytes: sizes[index]!, alias: aliases[index]!, aliases, facts, kept }));
    for (const [index, item] of made.entries()) {
      kept.put(item.alias, toKept(parts[index]!));
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
    const isError = isErrorResult(output.output);
    const facts = { source: "tool", tool: output.tool, arguments: copy(output.arguments), ...(isError ? { isError } : {}) } as const;
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
      const source = toFileSource({ alias: nameGivenAlias(name, isTaken), tenant, name, format, content, at: now().toISOString() });
      items.set(source.item.alias, source.item);
      sources.set(source.item.alias, source);
      return source.item;
    },
    get: (alias) => items.get(alias) ?? null,
    aliases: () => [...items.keys()],
    rowsAt: async (alias, question) => await reader.readRows(sourceOf(alias).item.read(), question),
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

type Part = OutputPart | ReadPart;

function isRead(part: Part): part is ReadPart {
  return "digest" in part;
}

function sizeOf(part: Part): number {
  const { body } = part;
  if ("bytes" in part && part.bytes !== undefined) return part.bytes;
  return typeof body === "string" ? (measureText(body).bytes ?? Buffer.byteLength(body)) : body.length;
}

/** Bytes are copied, so that whoever gave them can go on using them; those that a thread has read are nobody else's. */
function toKept(part: Part): string | Uint8Array {
  return typeof part.body === "string" || isRead(part) ? part.body : Buffer.from(part.body);
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
