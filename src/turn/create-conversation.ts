import { randomUUID } from "node:crypto";
import type { ModelMessage } from "ai";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { ReadChartRows } from "../interpreter/render-chart.ts";
import { omittedNote } from "../prompts/turn-prompts.ts";
import { clipText } from "../text/clip-text.ts";

/** The state that turns share: evidence by alias, and the questions and answers so far. Python variables do not survive a turn. */
export interface Conversation {
  readonly id: string;
  readonly evidence: EvidenceStore;
  /** Oldest first. */
  readonly exchanges: readonly Exchange[];
  /** Lets `render_chart` read rows that need Python: files, CSV, Parquet, Excel. Without it, charts can only use JSON. */
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
  const allExchanges = [...exchanges];
  return {
    id: conversationId,
    evidence: evidence ?? createEvidenceStore({ conversationId, tenant }),
    exchanges: allExchanges,
    readChartRows,
    add: (exchange) => void allExchanges.push(exchange),
  };
}

const EXCHANGE_CHARACTERS = 4_096;

/** The last exchanges, shortened, followed by the new question. */
export function toModelMessages({ exchanges }: Conversation, question: string, maxExchanges: number): ModelMessage[] {
  const earlier = exchanges.slice(-maxExchanges).flatMap((exchange): ModelMessage[] => [
    { role: "user", content: clipText(exchange.question, EXCHANGE_CHARACTERS, omittedNote) },
    { role: "assistant", content: clipText(exchange.answer, EXCHANGE_CHARACTERS, omittedNote) },
  ]);
  return [...earlier, { role: "user", content: question }];
}
