import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import type { Configured } from "../../config/open-configured.ts";
import { storedUploadSchema, type ConversationData, type Tables, type UploadStore } from "../../data/conversation-data.ts";
import { createConversationData } from "../../data/create-conversation-data.ts";
import type { EvidenceStore } from "../../evidence/evidence-store.ts";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { evidenceRecordSchema, toEvidenceRecord } from "../../evidence/evidence-record.ts";
import type { History } from "../../history/history.ts";
import { HttpFailure } from "./http-failure.ts";
import type { Log } from "./create-log.ts";
import type { TenantStores } from "./create-tenant-stores.ts";
import type { LiveTurn } from "./turns/create-live-turn.ts";
import type { Alias } from "../../protocol/http-tables.ts";

export interface ConversationPlace {
  readonly tenant: string;
  readonly id: string;
}

/** A conversation that somebody uses now: one object for all who do, so that they see the same aliases. What was said is read from the history. */
export interface LiveConversation extends ConversationPlace {
  readonly evidence: EvidenceStore;
  readonly data: ConversationData;
  /** Aliases whose rows are written. */
  readonly kept: Set<string>;
  /** Aborted when it is about to be removed: whoever uses it comes to an end. */
  readonly removed: AbortSignal;
  /** Ended turns of which a cell is run again now, once for each. */
  readonly runAgain: string[];
  /** The one that runs, or is about to. */
  turn: LiveTurn | "starting" | null;
}

export type Conversations = ReturnType<typeof createConversations>;

export interface ConversationsOptions {
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly tables: Tables;
  readonly uploads: UploadStore;
  readonly budgets: Configured["configuration"]["budgets"];
  readonly log: Log;
}

interface Opened {
  readonly live: Promise<LiveConversation>;
  readonly removing: AbortController;
  /** How many aliases it had when it was opened; null until it is. */
  openedWith: number | null;
  readonly uses: Limiter;
  isStale: boolean;
  /** Resolves when it is removed, once somebody began to. */
  gone: Promise<void> | null;
}

/** Opened again from the history it takes no memory for bytes, so few need to be kept between two uses. */
const KEPT_IDLE = 16;

export function createConversations(options: ConversationsOptions) {
  const { history, storesOf, log } = options;
  /** The last used is last. */
  const opened = new Map<string, Opened>();
  const keyOf = ({ tenant, id }: ConversationPlace): string => JSON.stringify([tenant, id]);

  const goingOf = (place: ConversationPlace): Promise<void> | null => opened.get(keyOf(place))?.gone ?? null;

  function enter(place: ConversationPlace): Opened {
    const key = keyOf(place);
    const entry = opened.get(key) ?? toOpened(place, options);
    opened.delete(key);
    opened.set(key, entry);
    return entry;
  }

  /** Opens it from the history, a new one when it is not there, for as long as the work takes. */
  async function use<Value>(place: ConversationPlace, work: (live: LiveConversation) => Promise<Value>): Promise<Value> {
    for (let going = goingOf(place); going !== null; going = goingOf(place)) await going;
    const entry = enter(place);
    try {
      return await entry.uses.run(async () => await work(await entry.live));
    } finally {
      if (entry.uses.taken === 0) await release(keyOf(place), entry);
    }
  }

  /** What came in meanwhile is in memory, and on the disk by now: the next use reads it from there. */
  async function release(key: string, entry: Opened): Promise<void> {
    const live = await entry.live.catch(() => null);
    if (entry.uses.taken > 0 || entry.gone !== null || opened.get(key) !== entry) return;
    if (live === null || entry.isStale || live.evidence.aliases().length !== entry.openedWith) opened.delete(key);
    const idle = [...opened].filter(([, { uses, gone }]) => uses.taken === 0 && gone === null);
    for (const [old] of idle.slice(0, Math.max(0, idle.length - KEPT_IDLE))) opened.delete(old);
  }

  /** Writes down those of its aliases that are not written yet: all, unless some are named. */
  async function save(live: LiveConversation, turnId: string, aliases: readonly string[] = live.evidence.aliases()): Promise<void> {
    const { tenant, id, evidence, kept } = live;
    for (const alias of aliases) {
      const item = evidence.get(alias);
      if (item === null || kept.has(alias) || item.file !== undefined) continue;
      kept.add(alias); // from now on, so that nobody else writes it meanwhile
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

  /** Ends what uses it, does the work when nothing does any more, and lets those who come meanwhile wait for that. */
  async function remove(place: ConversationPlace, work: () => void): Promise<void> {
    const key = keyOf(place);
    for (let going = goingOf(place); going !== null; going = goingOf(place)) await going;
    const entry = enter(place);
    const { promise, resolve } = Promise.withResolvers<void>();
    entry.gone = promise;
    entry.removing.abort(new HttpFailure({ code: "CONVERSATION_REMOVED", message: "The conversation was removed meanwhile." }));
    try {
      await entry.uses.idle();
      work();
    } finally {
      opened.delete(key);
      resolve();
    }
  }

  return {
    use,
    isInUse: (place: ConversationPlace): boolean => (opened.get(keyOf(place))?.uses.taken ?? 0) > 0,
    save,
    /** Something of it was removed: who uses it keeps what they have, and when nobody does it is opened anew. */
    refresh(place: ConversationPlace): void {
      const entry = opened.get(keyOf(place));
      if (entry === undefined) return;
      entry.isStale = true;
      if (entry.uses.taken === 0 && entry.gone === null) opened.delete(keyOf(place));
    },
    remove,
  };
}

function toOpened(place: ConversationPlace, options: ConversationsOptions): Opened {
  const removing = new AbortController();
  const live = open(place, removing.signal, options);
  const entry: Opened = { live, removing, openedWith: null, uses: createLimiter({ places: Infinity }), isStale: false, gone: null };
  live.then(
    ({ evidence }) => (entry.openedWith = evidence.aliases().length),
    () => {}, // told to who uses it
  );
  return entry;
}

async function open(
  { tenant, id }: ConversationPlace,
  removed: AbortSignal,
  { history, storesOf, tables, uploads, budgets, log }: ConversationsOptions,
): Promise<LiveConversation> {
  const { previewBytes, stepBytes } = budgets;
  const { evidence: blobs } = storesOf(tenant);
  const stored = history.evidence.list(tenant, id);
  const restored = stored.map(({ record, sha256 }) => ({
    record: evidenceRecordSchema.parse(JSON.parse(record)),
    read: () => blobs.read(sha256),
  }));
  const evidence = createEvidenceStore({ conversationId: id, tenant, budget: { previewBytes, stepBytes }, restored });
  const data = createConversationData({ evidence, tables });
  const kept = new Set(stored.map(({ alias }) => alias));
  for (const { alias, record } of history.uploads.list(tenant, id)) {
    const upload = await uploads.open(storedUploadSchema.parse(JSON.parse(record)));
    if (upload === null) log.warn("upload_missing", { conversation: id, alias });
    else kept.add(data.addUpload(upload).alias);
  }
  return { tenant, id, evidence, data, kept, removed, runAgain: [], turn: null };
}

const withRows: ReadonlySet<string> = new Set(["records", "array", "map", "table"]);
const tableFormats: ReadonlySet<string> = new Set(["csv", "tsv", "parquet", "xlsx", "jsonl"]);

/** What a conversation holds, oldest first. Nothing is read for it. */
export function toAliases({ tenant, id, evidence }: LiveConversation, history: History): Alias[] {
  const turnOf = new Map(history.evidence.list(tenant, id).map(({ alias, turnId }) => [alias, turnId]));
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
        turnId: turnOf.get(alias) ?? null,
        hasTable: tableFormats.has(format) || withRows.has(shape.kind),
      },
    ];
  });
}
