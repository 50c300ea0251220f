import { randomUUID } from "node:crypto";
import type { ReadChartRows } from "../interpreter/render-chart.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";

/** What lives on from turn to turn: the evidence, by alias, and what was said. Variables do not. */
export interface Conversation {
  readonly id: string;
  readonly evidence: EvidenceStore;
  /** Oldest first. */
  readonly exchanges: readonly Exchange[];
  /** How `render_chart` reads rows that take Python to read: files, CSV, Parquet, Excel. Without it only JSON is drawn. */
  readonly readChartRows?: ReadChartRows | undefined;
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
  readonly readChartRows?: ReadChartRows | undefined;
}

export function createConversation({ id, tenant, evidence, exchanges = [], readChartRows }: ConversationOptions = {}): Conversation {
  const conversationId = id ?? evidence?.conversationId ?? randomUUID();
  const said = [...exchanges];
  return {
    id: conversationId,
    evidence: evidence ?? createEvidenceStore({ conversationId, ...(tenant === undefined ? {} : { tenant }) }),
    exchanges: said,
    readChartRows,
    add: (exchange) => void said.push(exchange),
  };
}
