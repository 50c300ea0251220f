import type { ModelMessage } from "ai";
import type { Turn } from "../open-turn.ts";

const EARLIER_EXCHANGES = 10;

/** What was said before, and the question. */
export function toFirstMessages({ conversation, request }: Turn): ModelMessage[] {
  const earlier = conversation.exchanges.slice(-EARLIER_EXCHANGES).flatMap(({ question, answer }): ModelMessage[] => [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ]);
  return [...earlier, { role: "user", content: request.question }];
}
