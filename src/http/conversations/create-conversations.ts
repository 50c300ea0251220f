import type { Configured } from "../../configured/open-configured.ts";
import type { ConversationData, StoredUpload, Tables, UploadStore } from "../../data/contract.ts";
import { createConversationData } from "../../data/create-conversation-data.ts";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { evidenceRecordSchema, toEvidenceRecord } from "../../evidence/evidence-record.ts";
import type { History } from "../../history/contract.ts";
import { createConversation, type Conversation } from "../../turn/create-conversation.ts";
import type { Log } from "../log/create-log.ts";
import type { TenantStores } from "../stores/create-tenant-stores.ts";
import type { LiveTurn } from "../turns/create-live-turn.ts";

/** A conversation that somebody uses now: one object for all who do, so that they see the same aliases. */
export interface LiveConversation {
  readonly tenant: string;
  readonly id: string;
  readonly conversation: Conversation;
  readonly data: ConversationData;
  /** Aliases whose rows are written. */
  readonly kept: Set<string>;
  /** How many aliases it had when it was opened. */
  readonly openedWith: number;
  /** The one that runs, or is about to. */
  turn: LiveTurn | "starting" | null;
}

export interface Conversations {
  /** Opens it from the history, a new one when it is not there, for as long as the work takes. */
  use<Value>(place: { tenant: string; id: string }, work: (live: LiveConversation) => Promise<Value>): Promise<Value>;
  /** Writes down what it holds and is not written yet. */
  save(live: LiveConversation, turnId: string | null): Promise<void>;
  /** What was opened is forgotten: it was deleted. */
  forget(place: { tenant: string; id: string }): void;
}

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
  users: number;
}

/** Opened again from the history it takes no memory for bytes, so few need to be kept between two uses. */
const KEPT_IDLE = 16;

export function createConversations(options: ConversationsOptions): Conversations {
  const { history, storesOf, log } = options;
  const opened = new Map<string, Opened>();
  const keyOf = ({ tenant, id }: { tenant: string; id: string }): string => JSON.stringify([tenant, id]);

  async function use<Value>(place: { tenant: string; id: string }, work: (live: LiveConversation) => Promise<Value>): Promise<Value> {
    const key = keyOf(place);
    const entry = opened.get(key) ?? { live: open(place, options), users: 0 };
    opened.delete(key);
    opened.set(key, entry); // the last used is last
    entry.users += 1;
    try {
      const live = await entry.live;
      return await work(live);
    } finally {
      entry.users -= 1;
      await release(key, entry);
    }
  }

  /** What came in meanwhile is in memory, and on the disk by now: the next use reads it from there. */
  async function release(key: string, entry: Opened): Promise<void> {
    if (entry.users > 0 || opened.get(key) !== entry) return;
    const live = await entry.live.catch(() => null);
    if (entry.users > 0 || opened.get(key) !== entry) return;
    if (live === null || live.turn !== null || hasGrown(live)) opened.delete(key);
    const idle = [...opened].filter(([, { users }]) => users === 0);
    for (const [old] of idle.slice(0, Math.max(0, idle.length - KEPT_IDLE))) opened.delete(old);
  }

  async function save({ tenant, id, conversation, kept }: LiveConversation, turnId: string | null): Promise<void> {
    const { evidence } = conversation;
    for (const alias of evidence.aliases()) {
      const item = evidence.get(alias);
      if (item === null || kept.has(alias) || item.file !== undefined) continue;
      try {
        const { sha256, bytes } = item;
        history.evidence.add(
          { tenant, conversationId: id },
          { alias, turnId, record: JSON.stringify(toEvidenceRecord(item)), sha256, bytes },
        );
        await storesOf(tenant).evidence.put(sha256, item.read());
        kept.add(alias);
      } catch (error) {
        log.error("evidence_not_kept", { conversation: id, alias, reason: (error as Error).message });
      }
    }
  }

  return { use, save, forget: (place) => void opened.delete(keyOf(place)) };
}

function hasGrown({ conversation, openedWith }: LiveConversation): boolean {
  return conversation.evidence.aliases().length !== openedWith;
}

async function open(
  { tenant, id }: { tenant: string; id: string },
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
    const upload = await uploads.open(JSON.parse(record) as StoredUpload);
    if (upload === null) log.warn("upload_missing", { conversation: id, alias });
    else kept.add(data.addUpload(upload).alias);
  }
  const exchanges = history.turns
    .ofConversation(tenant, id)
    .flatMap(({ turnId, question, result }) => (result === null ? [] : [{ turnId, question, answer: result.answer }]));
  return {
    tenant,
    id,
    conversation: createConversation({ id, tenant, evidence, exchanges, readChartRows: data.chartRows }),
    data,
    kept,
    openedWith: evidence.aliases().length,
    turn: null,
  };
}
