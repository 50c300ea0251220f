import type { TurnStatus } from "../protocol/http-turns.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { StopReason, TurnResult } from "../protocol/turn-result.ts";
import type { CellRunRows, ConversationRows, EventRows, EvidenceRows, TurnRows, UploadRows } from "./create-rows.ts";
import type { ReferenceRows } from "./reference-rows.ts";

/**
 * What outlives a process: conversations, their turns with every event, what they hold by alias, and who is logged in. One SQLite file. Every row
 * carries a tenant, and nothing is found without naming one. Bytes of evidence, artifacts and datasets are files of their own; here is only who uses them.
 * All calls are synchronous and short.
 */
export interface History extends Disposable {
  readonly conversations: ConversationRows;
  readonly turns: TurnRows;
  readonly events: EventRows;
  readonly evidence: EvidenceRows;
  readonly uploads: UploadRows;
  readonly cellRuns: CellRunRows;
  readonly sessions: LoginRows;
  readonly references: ReferenceRows;
  readonly tenants: { list(): string[] };
  /** Nobody else writes meanwhile, of this process or another; all of it or nothing. */
  exclusively<Value>(work: () => Value): Value;
  /** Does it, and undoes it: to see what would be. */
  rehearse<Value>(work: () => Value): Value;
  /** Turns that ran when the last server died are ended, truthfully. Gives their ids. Only for who has the history to itself. */
  recover(at: string): string[];
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
  readonly snippet: string | null;
}

export interface ListOptions {
  readonly tenant: string;
  readonly limit: number;
  /** What the page before gave as `next`. */
  readonly before?: string | undefined;
}

export interface Page<Item> {
  readonly items: Item[];
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
  readonly result: TurnResult | null;
}

export interface NewTurn {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  readonly question: string;
  readonly at: string;
  /** Turns that this one is asked instead of. */
  readonly supersedes?: readonly string[] | undefined;
  readonly idempotency?: { readonly key: string; readonly requestHash: string } | undefined;
}

export interface StoredEvent {
  /** Counted from 1. */
  readonly seq: number;
  readonly at: string;
  readonly event: TurnEvent;
}

/** One alias. `record` is JSON text that whoever keeps it can read again. */
export interface StoredEvidence {
  readonly alias: string;
  readonly turnId: string | null;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** A file that somebody gave to a conversation; `record` is JSON text, as above. */
export interface StoredUploadRow {
  readonly alias: string;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface StoredLogin {
  readonly tenant: string;
  readonly isOperator: boolean;
  readonly expiresAt: string;
}

/** Browsers that exchanged a link for a cookie, by the hash of what the cookie holds. */
export interface LoginRows {
  add(sha256: string, session: StoredLogin): void;
  find(sha256: string, at: string): StoredLogin | null;
  remove(sha256: string): void;
  removeExpired(at: string): void;
}

/** Files of a tenant, by name: artifacts with their ending, the rest by hash. */
export interface Files {
  readonly artifacts: readonly string[];
  readonly datasets: readonly string[];
  readonly evidence: readonly string[];
  readonly uploads: readonly string[];
}

/** What is removed by itself: a conversation with all that only it uses, or an artifact that a client without a conversation made. */
export type Removable =
  | { readonly kind: "conversation"; readonly id: string }
  | { readonly kind: "artifact"; readonly contentHash: string; readonly type: string };

export interface StoredArtifact {
  readonly tenant: string;
  readonly contentHash: string;
  readonly type: string;
  readonly bytes: number;
}
