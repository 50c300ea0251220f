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
  /**
   * The conversation for a turn of this subject. If the last turn was for another one, evidence and exchanges are replaced by new, empty ones; only files
   * that were given stay. A turn that still runs keeps what it had.
   */
  forSubject(subject: string | null): Conversation;
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

export function createConversation({ id, tenant, readChartRows, ...options }: ConversationOptions = {}): Conversation {
  const conversationId = id ?? options.evidence?.conversationId ?? randomUUID();
  const evidence = options.evidence ?? createEvidenceStore({ conversationId, tenant });
  let current: ConversationContent = { evidence, exchanges: [...(options.exchanges ?? [])], readChartRows };
  let lastSubject: string | null | undefined;
  const forSubject = (subject: string | null): Conversation => {
    const isOther = lastSubject !== undefined && lastSubject !== subject;
    lastSubject = subject;
    // The reader of rows for charts reads the evidence that it was created with, so it is not kept.
    if (isOther) current = { evidence: current.evidence.withFilesOnly(), exchanges: [], readChartRows: undefined };
    const content = current;
    return { id: conversationId, ...content, add: (exchange) => void content.exchanges.push(exchange), forSubject };
  };
  return {
    id: conversationId,
    get evidence() {
      return current.evidence;
    },
    get exchanges() {
      return current.exchanges;
    },
    get readChartRows() {
      return current.readChartRows;
    },
    add: (exchange) => void current.exchanges.push(exchange),
    forSubject,
  };
}

interface ConversationContent extends Pick<Conversation, "evidence" | "readChartRows"> {
  readonly exchanges: Exchange[];
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
