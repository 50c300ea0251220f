import { randomUUID } from "node:crypto";
import type { StorageBudget } from "../blobs/storage-budget.ts";
import { isRecord } from "../text/json.ts";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import {
  type CellResult,
  defaultEvidenceBudget,
  type EvidenceBudget,
  type EvidenceItem,
  type EvidenceStore,
  type NamedData,
  type NamedFile,
  type Preview,
  type PreviewOptions,
  type StepPreviewOptions,
  type ToolOutput,
} from "./evidence-store.ts";
import { type ItemFacts, KeptItem, type RestoredItem, toFileSource, toRestoredSource } from "./kept-item.ts";
import { createToolAliases, nameGivenAlias, namePartAlias } from "./name-alias.ts";
import { type OutputPart, ReadOutput, type ReadPart, sizeOfPart } from "./output-part.ts";
import { buildPreview, type PreviewSource } from "./preview/build-preview.ts";
import { previewStep } from "./preview/preview-step.ts";
import { createOutputReader, type OutputReader } from "./reading/create-output-reader.ts";
import { readData, readText, readToolOutput } from "./read-tool-output.ts";
import type { RowsAt, RowsQuestion } from "./rows-at.ts";
import { toJsonText } from "./to-json-text.ts";

export interface EvidenceStoreOptions {
  readonly conversationId?: string;
  readonly tenant?: string;
  readonly budget?: Partial<EvidenceBudget>;
  /** A limit that evidence shares with other stores of the conversation. Default: none. */
  readonly storage?: Pick<StorageBudget, "check"> | undefined;
  /** Reads large outputs. Default: a new reader. */
  readonly reader?: OutputReader;
  /** Items that an earlier process kept, oldest first. They count towards the budget. */
  readonly restored?: readonly RestoredItem[];
  readonly now?: () => Date;
}

export function createEvidenceStore(options: EvidenceStoreOptions = {}): EvidenceStore {
  return new MemoryEvidenceStore(options);
}

/** Methods are arrow functions, so that they can be passed on without the store. */
class MemoryEvidenceStore implements EvidenceStore {
  readonly tenant: string;
  readonly conversationId: string;
  readonly toolOutputsByAlias = new Map<string, EvidenceItem>();
  readonly #options: EvidenceStoreOptions;
  readonly #sources = new Map<string, PreviewSource>();
  readonly #budget: EvidenceBudget;
  readonly #storage: Pick<StorageBudget, "check"> | undefined;
  readonly #reader: OutputReader;
  readonly #now: () => Date;
  #totalBytes = 0;

  constructor(options: EvidenceStoreOptions) {
    const { conversationId = randomUUID(), tenant = "local", reader = createOutputReader(), now = () => new Date() } = options;
    this.#options = { ...options, conversationId, reader };
    this.conversationId = conversationId;
    this.tenant = tenant;
    this.#budget = { ...defaultEvidenceBudget, ...options.budget };
    this.#storage = options.storage;
    this.#reader = reader;
    this.#now = now;
    for (const item of options.restored ?? []) this.#addSource(toRestoredSource(item, tenant));
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  readonly add = (output: ToolOutput): EvidenceItem => {
    const alias = this.#nameOutput(output.tool);
    const error = isRecord(output.output) && output.output["isError"] === true ? ({ isError: true } as const) : {};
    const facts = { source: "tool", tool: output.tool, arguments: copyJson(output.arguments), ...error } as const;
    return this.#keepParts(alias, output.read instanceof ReadOutput ? output.read.parts : readToolOutput(output), facts);
  };

  readonly addResult = (result: CellResult): EvidenceItem => this.#addResult(result, [readText(result.json)]);

  readonly addData = (data: NamedData): EvidenceItem => this.#addData(data, [readData(data)]);

  readonly addFile = ({ name, format, content, reader, readerExample }: NamedFile): EvidenceItem => {
    const alias = nameGivenAlias(name, this.#isTaken);
    const facts = { alias, tenant: this.tenant, tool: name, format, reader, readerExample };
    const source = toFileSource({ ...facts, at: this.#now().toISOString() }, content);
    this.toolOutputsByAlias.set(alias, source.item);
    this.#sources.set(alias, source);
    return source.item;
  };

  readonly keep = async (output: ToolOutput): Promise<EvidenceItem> => this.add(await this.#reader.readOutput(output));

  readonly keepResult = async (result: CellResult): Promise<EvidenceItem> => {
    const read = await this.#reader.readResult(result);
    return this.#addResult(result, read?.parts ?? [readText(result.json)]);
  };

  readonly keepData = async (data: NamedData): Promise<EvidenceItem> => {
    const read = await this.#reader.readData(data);
    return this.#addData(data, read?.parts ?? [readData(data)]);
  };

  readonly get = (alias: string): EvidenceItem | null => this.toolOutputsByAlias.get(alias) ?? null;

  readonly aliases = (): string[] => [...this.toolOutputsByAlias.keys()];

  readonly withFilesOnly = (): EvidenceStore => {
    const store = new MemoryEvidenceStore({ ...this.#options, restored: [] });
    for (const [alias, source] of this.#sources) {
      if (source.item.file === undefined) continue;
      store.toolOutputsByAlias.set(alias, source.item);
      store.#sources.set(alias, source);
    }
    return store;
  };

  readonly rowsAt = async (alias: string, question: RowsQuestion): Promise<RowsAt> =>
    await this.#reader.readRows(this.#sourceOf(alias).item.read(), question);

  readonly preview = (alias: string, { maxBytes = this.#budget.previewBytes }: PreviewOptions = {}): Preview =>
    buildPreview(this.#sourceOf(alias), maxBytes);

  readonly previewStep = (aliases: readonly string[], options: StepPreviewOptions = {}): Preview[] => {
    const { maxBytes = this.#budget.stepBytes, maxBytesPerOutput = this.#budget.previewBytes } = options;
    const sources = this.#oldestFirst(aliases).map((alias) => this.#sourceOf(alias));
    return previewStep(sources, { maxBytes, maxBytesPerOutput: Math.min(maxBytesPerOutput, maxBytes) });
  };

  readonly #isTaken = (alias: string): boolean => this.toolOutputsByAlias.has(alias);
  readonly #nameOutput = createToolAliases(this.#isTaken);

  #addResult({ from, arguments: given }: CellResult, parts: readonly Part[]): EvidenceItem {
    return this.#keepParts(this.#nameOutput("result"), parts, { source: "result", tool: from, arguments: copyJson(given) });
  }

  #addData({ name, reader }: NamedData, parts: readonly Part[]): EvidenceItem {
    return this.#keepParts(nameGivenAlias(name, this.#isTaken), parts, { source: "data", tool: name, arguments: null, reader });
  }

  /** Keeps all parts of an output, or none if they do not fit the budget. Returns the item of the main part. */
  #keepParts(alias: string, parts: readonly Part[], givenFacts: Omit<ItemFacts, "tenant" | "at">): EvidenceItem {
    const sizes = parts.map(sizeOfPart);
    const addedBytes = sizes.reduce((sum, size) => sum + size, 0);
    if (this.#totalBytes + addedBytes > this.#budget.totalBytes) {
      throw full({ alias, added: addedBytes, seen: this.#totalBytes + addedBytes, allowed: this.#budget.totalBytes });
    }
    this.#storage?.check(alias, addedBytes);
    const aliases = this.#nameParts(alias, parts);
    const facts = { ...givenFacts, tenant: this.tenant, at: this.#now().toISOString() };
    const items = parts.map((part, index) => new KeptItem({ part, bytes: sizes[index]!, alias: aliases[index]!, aliases, facts }));
    for (const item of items) this.#addSource(item);
    return items[0]!;
  }

  #nameParts(alias: string, parts: readonly Part[]): string[] {
    const names = [alias];
    const isTaken = (name: string): boolean => this.#isTaken(name) || names.includes(name);
    for (const { part } of parts.slice(1)) names.push(namePartAlias({ alias, part, isTaken }));
    return names;
  }

  #addSource(source: PreviewSource): void {
    this.#totalBytes += source.item.bytes;
    this.toolOutputsByAlias.set(source.item.alias, source.item);
    this.#sources.set(source.item.alias, source);
  }

  #sourceOf(alias: string): PreviewSource {
    const source = this.#sources.get(alias);
    if (source === undefined) throw unknownAlias(alias, this.aliases());
    return source;
  }

  /** Without duplicates. Unknown aliases come last. */
  #oldestFirst(aliases: readonly string[]): string[] {
    const requested = new Set(aliases);
    const known = this.aliases().filter((alias) => requested.has(alias));
    return [...known, ...[...requested].filter((alias) => !this.#isTaken(alias))];
  }
}

type Part = OutputPart | ReadPart;

function copyJson(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(toJsonText(value).text) as unknown);
}

function full({ alias, added, seen, allowed }: { alias: string; added: number; seen: number; allowed: number }): SluiceError {
  return new SluiceError({
    code: "EVIDENCE_FULL",
    message: `${alias} has ${added} bytes. With it, the evidence of this conversation would have ${seen} bytes; ${allowed} are allowed.`,
    hint: "Request less data from the tool, start a new conversation, or raise the evidence budget totalBytes.",
    details: { alias, bytes: added, seen, allowed },
  });
}

function unknownAlias(alias: string, known: readonly string[]): UsageError {
  return new UsageError({
    code: "ALIAS_UNKNOWN",
    message: `There is no output named ${alias}. Known aliases: ${known.join(", ") || "none"}.`,
    hint: "Use one of the known aliases.",
    details: { alias, known },
  });
}
