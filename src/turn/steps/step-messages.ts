import type { ModelMessage, ToolModelMessage } from "ai";
import { createEnvelope, serializeEnvelope } from "../../errors/envelope.ts";
import type { Observations } from "../observations.ts";

/** The messages of a step, with the answers of tools as they are read now. */
export function toStepMessages(messages: readonly ModelMessage[], observations: Observations): ModelMessage[] {
  return messages.map((message) => (message.role === "tool" ? rewrite(message, observations) : message));
}

function rewrite(message: ToolModelMessage, observations: Observations): ToolModelMessage {
  const content = message.content.map((part) => {
    if (part.type !== "tool-result") return part;
    const observation = observations.get(part.toolCallId);
    if (observation === null) return { ...part, output: { type: "error-text" as const, value: toEnvelopeText(part) } };
    return { ...part, output: { type: observation.isError ? ("error-text" as const) : ("text" as const), value: observation.text } };
  });
  return { ...message, content };
}

/** A call that never reached a tool: no such tool now, or arguments that are no JSON. The SDK's sentence becomes an envelope. */
function toEnvelopeText({ toolName, output }: { toolName: string; output: unknown }): string {
  const said = (output as { value?: unknown }).value;
  const sentence = typeof said === "string" ? said : JSON.stringify(said ?? "The call could not be read.");
  const isMissing = /no(?:t| such)? .*tool|unavailable tool|NoSuchTool/i.test(sentence);
  return `{"status":"error","error":${serializeEnvelope(
    createEnvelope({
      code: isMissing ? "TOOL_NOT_FOUND" : "SCHEMA_VALIDATION_FAILED",
      tool: toolName,
      summary: isMissing ? `${toolName} cannot be called in this step.` : `The call was not made: its arguments are not valid JSON.`,
      details: [{ path: "", issue: sentence, received_type: "string" }],
    }),
  )}}`;
}
