import type { ModelMessage } from "ai";
import { clip } from "./clip.ts";
import type { Turn } from "./open-turn.ts";

const EARLIER_CHARACTERS = 4_096;

/** What was said last in the conversation, and the question. */
export function toFirstMessages({ conversation, request }: Turn, earlierExchanges: number): ModelMessage[] {
  const earlier = conversation.exchanges.slice(-earlierExchanges).flatMap(({ question, answer }): ModelMessage[] => [
    { role: "user", content: clip(question, EARLIER_CHARACTERS) },
    { role: "assistant", content: clip(answer, EARLIER_CHARACTERS) },
  ]);
  return [...earlier, { role: "user", content: request.question }];
}
