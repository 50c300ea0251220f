import type { z } from "zod";
import { createStorageBudget, type StorageBudget } from "../../blobs/storage-budget.ts";
import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import type { Configured } from "../../config/open-configured.ts";
import { storedUploadSchema, type ConversationData, type UploadStore } from "../../data/conversation-data.ts";
import { createConversationData } from "../../data/create-conversation-data.ts";
import type { Tables } from "../../data/tables/create-tables.ts";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { evidenceRecordSchema, toEvidenceRecord } from "../../evidence/evidence-record.ts";
import type { EvidenceStore } from "../../evidence/evidence-store.ts";
import type { History } from "../../history/history.ts";
import type { Alias } from "../../protocol/http-tables.ts";
import type { Log } from "./create-log.ts";
import type { TenantStores } from "./create-tenant-stores.ts";
import { HttpFailure } from "./http-failure.ts";
import type { LiveTurn } from "./turns/live-turn.ts";

export interface ConversationKey {
  readonly tenant: string;
  readonly id: string;
}

/** A conversation in memory while requests use it. All of them share one object, so that they see the same aliases; messages are read from the history. */
export interface LiveConversation extends ConversationKey, ConversationContent {
  /** Limits what the conversation has on disk. Evidence counts from the moment when it is in memory. */
  readonly storage: StorageBudget;
  /** Aborted before the conversation is removed, so that everything that uses it stops. */
  readonly removalSignal: AbortSignal;
  /** Ended turns with a cell that is being rerun, once for each rerun. */
  readonly rerunTurnIds: string[];
  /** The turn that is running or about to start. */
  turn: LiveTurn | "starting" | null;
}

interface ConversationContent {
  evidence: EvidenceStore;
  data: ConversationData;
  /** Aliases that have a row in the history. */
  savedAliases: Set<string>;
}

export interface ConversationsOptions {
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly tables: Tables;
  readonly uploads: UploadStore;
  readonly budgets: Configured["configuration"]["budgets"];
  /** What one conversation may have on disk. */
  readonly maxBytes: number;
  readonly log: Log;
}

interface Entry {
  readonly conversation: Promise<LiveConversation>;
  readonly removal: AbortController;
  /** The number of aliases after opening; null until then. */
  initialAliases: number | null;
  /** Counts the users. */
  readonly uses: Limiter;
  /** Whether the stored rows have changed, so that the next user must open it again. */
  isStale: boolean;
  /** Resolves when the removal has finished; null unless one has begun. */
  removed: Promise<void> | null;
}

/** Reopening a conversation is cheap and its bytes stay on disk, so only a few idle ones are cached. */
const MAX_IDLE = 16;

/** The conversations that requests use at the moment, opened from the history on demand. */
export class Conversations {
  readonly #options: ConversationsOptions;
  /** Most recently used last. */
  readonly #entries = new Map<string, Entry>();

  constructor(options: ConversationsOptions) {
    this.#options = options;
  }

  /** Runs `work` with the conversation, opened from the history or new. Waits while it is being removed. */
  async use<Value>(key: ConversationKey, work: (conversation: LiveConversation) => Promise<Value>): Promise<Value> {
    // Nothing may be awaited between the end of this loop and #enter, or another removal could begin in between.
    for (let removed = this.#removalOf(key); removed !== null; removed = this.#removalOf(key)) await removed;
    const entry = this.#enter(key);
    try {
      return await entry.uses.run(async () => await work(await entry.conversation));
    } finally {
      if (entry.uses.taken === 0) await this.#release(keyText(key), entry);
    }
  }

  isInUse(key: ConversationKey): boolean {
    return (this.#entries.get(keyText(key))?.uses.taken ?? 0) > 0;
  }

  /** Makes the next user read the conversation from the history again. Current users keep what they have. */
  invalidate(key: ConversationKey): void {
    const entry = this.#entries.get(keyText(key));
    if (entry === undefined) return;
    entry.isStale = true;
    if (entry.uses.taken === 0 && entry.removed === null) this.#entries.delete(keyText(key));
  }

  /** Stops everything that uses the conversation, then calls `deleteRows`. Calls of `use` that come meanwhile wait until that is done. */
  async remove(key: ConversationKey, deleteRows: () => void): Promise<void> {
    // As in `use`, nothing may be awaited between this loop and #enter.
    for (let removed = this.#removalOf(key); removed !== null; removed = this.#removalOf(key)) await removed;
    const entry = this.#enter(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    entry.removed = promise;
    entry.removal.abort(new HttpFailure({ code: "CONVERSATION_REMOVED", message: "The conversation was removed while it was in use." }));
    try {
      await entry.uses.idle();
      deleteRows();
    } finally {
      this.#entries.delete(keyText(key));
      resolve();
    }
  }

  /** Writes evidence that is not stored yet to the history: the named aliases, by default all. A failure is logged. */
  async saveEvidence(
    { tenant, id, evidence, savedAliases }: LiveConversation,
    turnId: string,
    aliases: readonly string[] = evidence.aliases(),
  ): Promise<void> {
    const { history, storesOf, log } = this.#options;
    for (const alias of aliases) {
      const item = evidence.get(alias);
      if (item === null || savedAliases.has(alias) || item.file !== undefined) continue;
      savedAliases.add(alias); // before the first await, so that no other call writes it too
      try {
        const { sha256, bytes } = item;
        const record = JSON.stringify(toEvidenceRecord(item));
        history.evidence.add({ tenant, conversationId: id }, { alias, turnId, record, sha256, bytes });
        await storesOf(tenant).evidence.put({ content: item.read(), hash: sha256 });
      } catch (error) {
        log.error("evidence_not_kept", { conversation: id, alias, reason: (error as Error).message });
      }
    }
  }

  /**
   * Call before a turn. If the previous turn acted for another subject, removes what tools and cells returned in the conversation, also for requests that
   * use it at the moment. Uploaded files and recorded answers stay.
   */
  async changeSubject(conversation: LiveConversation, subject: string | null): Promise<void> {
    const { tenant, id } = conversation;
    const { history, storesOf } = this.#options;
    const hasChanged = history.inTransaction(() => {
      const isOther = history.conversations.changeSubject({ tenant, id, subject });
      if (isOther) history.references.deleteEvidence(tenant, id, (files) => storesOf(tenant).remove(files));
      return isOther;
    });
    if (!hasChanged) return;
    Object.assign(conversation, await openContent(conversation, this.#options));
    this.invalidate(conversation);
  }

  #removalOf(key: ConversationKey): Promise<void> | null {
    return this.#entries.get(keyText(key))?.removed ?? null;
  }

  #enter(key: ConversationKey): Entry {
    const text = keyText(key);
    const entry = this.#entries.get(text) ?? openEntry(key, this.#options);
    this.#entries.delete(text);
    this.#entries.set(text, entry);
    return entry;
  }

  /** Drops an unused conversation that failed to open, is stale or has new evidence in memory (which is on disk by now), and the oldest idle ones. */
  async #release(text: string, entry: Entry): Promise<void> {
    const conversation = await entry.conversation.catch(() => null);
    if (entry.uses.taken > 0 || entry.removed !== null || this.#entries.get(text) !== entry) return;
    const isUnchanged = conversation?.evidence.aliases().length === entry.initialAliases;
    if (conversation === null || entry.isStale || !isUnchanged) this.#entries.delete(text);
    const idle = [...this.#entries].filter(([, { uses, removed }]) => uses.taken === 0 && removed === null);
    for (const [oldest] of idle.slice(0, Math.max(0, idle.length - MAX_IDLE))) this.#entries.delete(oldest);
  }
}

function keyText({ tenant, id }: ConversationKey): string {
  return JSON.stringify([tenant, id]);
}

function openEntry(key: ConversationKey, options: ConversationsOptions): Entry {
  const removal = new AbortController();
  const conversation = openConversation(key, removal.signal, options);
  const entry: Entry = {
    conversation,
    removal,
    initialAliases: null,
    uses: createLimiter({ places: Infinity }),
    isStale: false,
    removed: null,
  };
  conversation.then(
    ({ evidence }) => (entry.initialAliases = evidence.aliases().length),
    () => {}, // the users of the entry get the error
  );
  return entry;
}

async function openConversation(
  key: ConversationKey,
  removalSignal: AbortSignal,
  options: ConversationsOptions,
): Promise<LiveConversation> {
  const stores = options.storesOf(key.tenant);
  const measure = (): number => stores.sizeOfConversation(key.id) + unsavedBytes(conversation);
  const storage = createStorageBudget({ maxBytes: options.maxBytes, measure });
  const content = await openContent({ ...key, storage }, options);
  const conversation: LiveConversation = { ...key, ...content, storage, removalSignal, rerunTurnIds: [], turn: null };
  return conversation;
}

/** The size of evidence that has no row yet. */
function unsavedBytes({ evidence, savedAliases }: ConversationContent): number {
  const items = [...evidence.toolOutputsByAlias.values()];
  return items.reduce((sum, item) => sum + (savedAliases.has(item.alias) || item.file !== undefined ? 0 : item.bytes), 0);
}

async function openContent(
  { tenant, id, storage }: ConversationKey & Pick<LiveConversation, "storage">,
  { history, storesOf, tables, uploads, budgets, log }: ConversationsOptions,
): Promise<ConversationContent> {
  const { evidence: blobs } = storesOf(tenant);
  const { quarantine } = history;
  const rows = history.evidence.list(tenant, id);
  const restored = rows.flatMap(({ alias, record, sha256 }) => {
    const parsed = parseRecord(evidenceRecordSchema, record);
    if (parsed === null) quarantine.putAside("evidence", { tenant, conversationId: id, name: alias, reason: "has no valid record" });
    return parsed === null ? [] : [{ record: parsed, read: () => blobs.read(sha256) }];
  });
  const evidence = createEvidenceStore({ conversationId: id, tenant, budget: budgets, storage, restored });
  const data = createConversationData({ evidence, tables });
  const savedAliases = new Set(rows.map(({ alias }) => alias));
  for (const { alias, record } of history.uploads.list(tenant, id)) {
    const parsed = parseRecord(storedUploadSchema, record);
    if (parsed === null) {
      quarantine.putAside("upload", { tenant, conversationId: id, name: alias, reason: "has no valid record" });
      continue;
    }
    const upload = await uploads.open(parsed);
    if (upload === null) log.warn("upload_missing", { conversation: id, alias });
    else savedAliases.add(data.addUpload({ ...upload, readerExample: toUploadExample(id, upload.fileName) }).alias);
  }
  return { evidence, data, savedAliases };
}

/** Null if the text is not JSON of this form. */
function parseRecord<Schema extends z.ZodType>(schema: Schema, text: string): z.infer<Schema> | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Shows how an upload is given options for reading it; see `EvidenceItem.readerExample`. */
export function toUploadExample(conversationId: string, fileName: string): string {
  return `POST /api/conversations/${conversationId}/files?name=${encodeURIComponent(fileName)}&{}`;
}

const shapesWithRows: ReadonlySet<string> = new Set(["records", "array", "map", "table"]);
const tableFormats: ReadonlySet<string> = new Set(["csv", "tsv", "parquet", "xlsx", "jsonl"]);

/** Describes the aliases of a conversation, oldest first, without reading their bytes. */
export function describeAliases({ tenant, id, evidence }: LiveConversation, history: History): Alias[] {
  const turnIds = new Map(history.evidence.list(tenant, id).map(({ alias, turnId }) => [alias, turnId]));
  return evidence.aliases().flatMap((alias) => {
    const item = evidence.get(alias);
    if (item === null) return [];
    const { source, tool, format, bytes, shape, at } = item;
    return [
      {
        alias,
        source,
        tool,
        format,
        bytes,
        rows: shape.rows,
        columns: [...shape.columns],
        at,
        turnId: turnIds.get(alias) ?? null,
        hasTable: tableFormats.has(format) || shapesWithRows.has(shape.kind),
      },
    ];
  });
}
