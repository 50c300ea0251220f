import type { TurnStatus } from "../protocol/http-turns.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { RecordedResult, StopReason } from "../protocol/turn-result.ts";
import type { OlderArtifacts } from "./older-artifacts.ts";
import type { Quarantine } from "./quarantine.ts";
import type { ReferenceRows } from "./reference-rows.ts";
import type { ConversationRows, EvidenceRows, LoginRows, UploadRows } from "./rows.ts";
import type { StoredSizes } from "./stored-sizes.ts";
import type { CellRunRows, EventRows, TurnRows } from "./turn-rows.ts";

/**
 * Everything of the server that survives a restart, in one SQLite file: conversations, turns with all their events, aliases and logins. Every row belongs to
 * a tenant, and every query names one. The bytes of evidence, artifacts, datasets and uploads are separate files; rows only refer to them by hash.
 * All calls are synchronous and short.
 */
export interface History extends Disposable {
  readonly conversations: ConversationRows;
  readonly turns: TurnRows;
  readonly events: EventRows;
  readonly evidence: EvidenceRows;
  readonly uploads: UploadRows;
  readonly cellRuns: CellRunRows;
  readonly logins: LoginRows;
  readonly references: ReferenceRows;
  readonly sizes: StoredSizes;
  readonly olderArtifacts: OlderArtifacts;
  readonly quarantine: Quarantine;
  readonly tenants: { list(): string[] };
  /** Runs `work` in one transaction that blocks all other writers, also those of other processes. Rolls back if it throws. */
  inTransaction<Value>(work: () => Value): Value;
  /** Runs `work` in a transaction and always rolls it back: shows what a change would do. */
  dryRun<Value>(work: () => Value): Value;
  /**
   * Ends the turns that were running when the last server died, with the events that were stored, and returns their ids.
   * Call it only while no other server uses the file.
   */
  recoverTurns(at: string): string[];
  /** Idempotent. */
  close(): void;
}

export interface StoredConversation {
  readonly tenant: string;
  readonly id: string;
  readonly title: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ListedConversation extends StoredConversation {
  readonly turns: number;
  /** Of the latest turn; null while it runs, or without one. */
  readonly stopReason: StopReason | null;
  /** The text around the first match of a search, else null. */
  readonly snippet: string | null;
}

export interface ListOptions {
  readonly tenant: string;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly before?: string | undefined;
}

export interface Page<Item> {
  readonly items: Item[];
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
}

export interface StoredTurn {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  readonly question: string;
  readonly status: TurnStatus;
  readonly createdAt: string;
  readonly endedAt: string | null;
  readonly stopReason: StopReason | null;
  readonly supersededBy: string | null;
  readonly result: RecordedResult | null;
}

export interface NewTurn {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  readonly question: string;
  readonly at: string;
  /** Turns that this one replaces: the user edited or repeated a question. */
  readonly supersedes?: readonly string[] | undefined;
  readonly idempotency?: IdempotencyKey | undefined;
}

/** Sent by a client, so that a repeated request starts no second turn. */
export interface IdempotencyKey {
  readonly key: string;
  /** Tells a repeated request from another one with the same key. */
  readonly requestHash: string;
}

export interface StoredEvent {
  /** Counted from 1. */
  readonly seq: number;
  readonly at: string;
  readonly event: TurnEvent;
}

/** One alias. `record` is JSON that only the caller interprets. */
export interface StoredEvidence {
  readonly alias: string;
  readonly turnId: string | null;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** A file that was uploaded to a conversation. `record` is JSON that only the caller interprets. */
export interface UploadRow {
  readonly alias: string;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** A browser that is logged in. */
export interface StoredLogin {
  readonly tenant: string;
  readonly isOperator: boolean;
  readonly expiresAt: string;
}

/** Names of a tenant's files: `hash.type` for artifacts, the hash for the others. */
export interface FileNames {
  readonly artifacts: readonly string[];
  readonly datasets: readonly string[];
  readonly evidence: readonly string[];
  readonly uploads: readonly string[];
}

/** The unit of retention: a conversation with everything that only it uses, or an artifact that an MCP client published without a conversation. */
export type PrunableItem =
  | { readonly kind: "conversation"; readonly id: string }
  | { readonly kind: "artifact"; readonly contentHash: string; readonly type: string };

/** A file of an artifact that a row refers to. */
export interface ArtifactRow {
  readonly tenant: string;
  readonly contentHash: string;
  readonly type: string;
  readonly bytes: number;
}
