import type { ModelMessage } from "ai";
import type { Turn } from "../open-turn.ts";

const EARLIER_EXCHANGES = 10;
const EARLIER_CHARACTERS = 4_096;

/** What was said before, and the question. */
export function toFirstMessages({ conversation, request }: Turn): ModelMessage[] {
  const earlier = conversation.exchanges.slice(-EARLIER_EXCHANGES).flatMap(({ question, answer }): ModelMessage[] => [
    { role: "user", content: clip(question) },
    { role: "assistant", content: clip(answer) },
  ]);
  return [...earlier, { role: "user", content: request.question }];
}

function clip(text: string): string {
  return text.length <= EARLIER_CHARACTERS ? text : `${text.slice(0, EARLIER_CHARACTERS)}…`;
}
