import { randomUUID } from "node:crypto";
import type { EvidenceStore } from "../evidence/contract.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";

/** What lives on from turn to turn: the evidence, by alias, and what was said. Variables do not. */
export interface Conversation {
  readonly id: string;
  readonly evidence: EvidenceStore;
  /** Oldest first. */
  readonly exchanges: readonly Exchange[];
  add(exchange: Exchange): void;
}

export interface Exchange {
  readonly turnId: string;
  readonly question: string;
  readonly answer: string;
}

export interface ConversationOptions {
  readonly id?: string | undefined;
  readonly tenant?: string | undefined;
  readonly evidence?: EvidenceStore | undefined;
  readonly exchanges?: readonly Exchange[] | undefined;
}

export function createConversation({ id, tenant, evidence, exchanges = [] }: ConversationOptions = {}): Conversation {
  const conversationId = id ?? evidence?.conversationId ?? randomUUID();
  const said = [...exchanges];
  return {
    id: conversationId,
    evidence: evidence ?? createEvidenceStore({ conversationId, ...(tenant === undefined ? {} : { tenant }) }),
    exchanges: said,
    add: (exchange) => void said.push(exchange),
  };
}
