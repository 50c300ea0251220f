import type { ModelMessage, ToolModelMessage } from "ai";
import type { Observations } from "../observations.ts";

/** The messages of a step, with the answers of tools as they are read now. Every call has one: what the SDK says of those that it refused is replaced, too. */
export function toStepMessages(messages: readonly ModelMessage[], observations: Observations): ModelMessage[] {
  return messages.map((message) => (message.role === "tool" ? rewrite(message, observations) : message));
}

function rewrite(message: ToolModelMessage, observations: Observations): ToolModelMessage {
  const content = message.content.map((part) => {
    const observation = part.type === "tool-result" ? observations.get(part.toolCallId) : null;
    if (part.type !== "tool-result" || observation === null) return part;
    return { ...part, output: { type: observation.isError ? ("error-text" as const) : ("text" as const), value: observation.text } };
  });
  return { ...message, content };
}
