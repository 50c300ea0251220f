import type { CellRun } from "../protocol/http-cells.ts";
import type { TurnStatus } from "../protocol/http-turns.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { StopReason, TurnResult } from "../protocol/turn-result.ts";

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
  readonly sessions: SessionRows;
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

export interface ConversationRows {
  /** Makes it when it is not there. */
  ensure(conversation: { tenant: string; id: string; title: string; at: string }): StoredConversation;
  get(tenant: string, id: string): StoredConversation | null;
  list(options: ListOptions & { search?: string | undefined }): Page<ListedConversation>;
  rename(tenant: string, id: string, title: string): boolean;
  touch(tenant: string, id: string, at: string): void;
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

export interface TurnRows {
  begin(turn: NewTurn): void;
  end(turn: { tenant: string; turnId: string; result: TurnResult; at: string }): void;
  get(tenant: string, turnId: string): StoredTurn | null;
  list(options: ListOptions & { conversationId?: string | undefined; status?: TurnStatus | undefined }): Page<StoredTurn>;
  /** Oldest first, without those that were superseded. */
  ofConversation(tenant: string, conversationId: string): StoredTurn[];
  byIdempotencyKey(tenant: string, key: string): { turnId: string; requestHash: string } | null;
  byDataset(tenant: string, datasetId: string): { hash: string } | null;
}

export interface StoredEvent {
  /** Counted from 1. */
  readonly seq: number;
  readonly at: string;
  readonly event: TurnEvent;
}

export interface EventRows {
  append(place: { tenant: string; turnId: string }, stored: StoredEvent): void;
  /** Those after a number, in order. */
  read(place: { tenant: string; turnId: string; after?: number | undefined }): StoredEvent[];
}

/** One alias. `record` is JSON text that whoever keeps it can read again. */
export interface StoredEvidence {
  readonly alias: string;
  readonly turnId: string | null;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface EvidenceRows {
  add(place: { tenant: string; conversationId: string }, item: StoredEvidence): void;
  /** In the order in which they came. */
  list(tenant: string, conversationId: string): StoredEvidence[];
}

/** A file that somebody gave to a conversation; `record` is JSON text, as above. */
export interface StoredUploadRow {
  readonly alias: string;
  readonly record: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface UploadRows {
  /** `isThere`: whether the bytes are, asked when nobody can remove them any more. When they are not, nothing is added, and it says so. */
  add(place: { tenant: string; conversationId: string; at: string }, upload: StoredUploadRow, isThere: () => boolean): boolean;
  list(tenant: string, conversationId: string): StoredUploadRow[];
}

export interface CellRunRows {
  add(tenant: string, run: CellRun): void;
  /** Oldest first. */
  list(tenant: string, turnId: string): CellRun[];
}

export interface StoredSession {
  readonly tenant: string;
  readonly isOperator: boolean;
  readonly expiresAt: string;
}

/** Browsers that exchanged a link for a cookie, by the hash of what the cookie holds. */
export interface SessionRows {
  add(sha256: string, session: StoredSession): void;
  find(sha256: string, at: string): StoredSession | null;
  remove(sha256: string): void;
  removeExpired(at: string): void;
}

/** Files of a tenant. */
export interface Files {
  readonly artifacts: readonly { readonly contentHash: string; readonly type: string }[];
  /** Hashes. */
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

export interface ReferenceRows {
  /** Before the bytes are kept: what is referred to is never removed. */
  addArtifact(artifact: StoredArtifact & { readonly turnId: string }): void;
  /** One that no turn made, of a client of `/mcp`. Published again it counts as new. */
  addPublished(artifact: StoredArtifact & { readonly at: string }): void;
  /** Everything that is referred to. */
  inUse(tenant: string): Files;
  usedBytes(tenant: string): number;
  /** Not used since then, oldest first, without conversations that run. */
  unusedSince(tenant: string, at: string): Removable[];
  remove(tenant: string, what: Removable, remove: (files: Files) => void): void;
  /**
   * Removes a turn with what only it uses. Evidence that later turns of the conversation name stays. `remove` deletes the files that nothing refers to any
   * more, while nobody else can begin to refer to them; if it throws, nothing is removed.
   */
  deleteTurn(tenant: string, turnId: string, remove: (files: Files) => void): boolean;
  deleteConversation(tenant: string, id: string, remove: (files: Files) => void): boolean;
}
