import type { UIMessageChunk } from "ai";
import type { StoredEvent } from "../../history/contract.ts";
import type { ChatMetadata } from "../../protocol/http-chat.ts";
import type { TurnEvent } from "../../protocol/turn-events.ts";

/** The events of a turn as the AI SDK's UI message stream: data parts one to one, the answer as text. Made anew for each listener. */
export interface ChatChunks {
  begin(): UIMessageChunk[];
  of(stored: StoredEvent): UIMessageChunk[];
}

const ANSWER = "answer";

export function createChatChunks(metadata: ChatMetadata): ChatChunks {
  let isAnswering = false;

  function endAnswer(): UIMessageChunk[] {
    const wasAnswering = isAnswering;
    isAnswering = false;
    return wasAnswering ? [{ type: "text-end", id: ANSWER }] : [];
  }

  return {
    begin: () => [{ type: "start", messageId: metadata.turnId, messageMetadata: metadata }],
    of({ at, event }) {
      if (event.type === "answer-delta") {
        const start: UIMessageChunk[] = isAnswering ? [] : [{ type: "text-start", id: ANSWER }];
        isAnswering = true;
        return [...start, { type: "text-delta", id: ANSWER, delta: event.text }];
      }
      if (event.type !== "turn-end") return [toPart(event, at)];
      const { gaps, outcome } = event.result;
      return [
        ...endAnswer(),
        { type: "data-gaps", data: { gaps, at } },
        toPart(event, at),
        { type: "finish", messageMetadata: { ...metadata, status: "ended", stopReason: outcome.stopReason } satisfies ChatMetadata },
      ];
    },
  };
}

function toPart(event: TurnEvent, at: string): UIMessageChunk {
  const { type, ...data } = event;
  const id = partId(event);
  return { type: `data-${type}`, ...(id === null ? {} : { id }), data: { ...data, at } };
}

/** A part with an id takes the place of the one before it. */
function partId(event: TurnEvent): string | null {
  if (event.type === "tool-progress") return `progress:${event.callId}`;
  if (event.type === "approval-request") return `approval:${event.approvalId}`;
  return event.type === "artifact" ? `artifact:${event.artifact.contentHash}` : null;
}
