import type { ModelMessage, ToolModelMessage } from "ai";
import { createEnvelope, serializeEnvelope } from "../../errors/envelope.ts";
import type { EvidenceStore, Preview } from "../../evidence/contract.ts";
import type { TurnBudgets } from "../budgets.ts";
import type { Observation, Observations } from "../observations.ts";

export interface ContextOptions {
  readonly observations: Observations;
  readonly evidence: EvidenceStore;
  readonly budgets: Pick<TurnBudgets, "stepBytes" | "answerBytes">;
}

/**
 * The messages of a step, with the answers of tools as they are read now. Previews share one budget and other answers another; the oldest give way first.
 * The evidence is whole whatever is shown of it. As long as all fits, nothing changes, so that a provider's cache of the prompt holds.
 */
export function toStepMessages(messages: readonly ModelMessage[], options: ContextOptions): ModelMessage[] {
  const texts = new Map([...fitPreviews(options), ...fitAnswers(options)]);
  return messages.map((message) => (message.role === "tool" ? rewrite(message, options.observations, texts) : message));
}

type Texts = [callId: string, text: string][];

function fitPreviews({ observations, evidence, budgets }: ContextOptions): Texts {
  const shown = [...observations.entries()].filter(([, { previews }]) => previews.length > 0);
  const bytes = shown.reduce((sum, [, { text }]) => sum + Buffer.byteLength(text), 0);
  if (bytes <= budgets.stepBytes) return shown.map(([callId, { text }]) => [callId, text]);
  const previews = evidence.previewStep(
    shown.flatMap(([, observation]) => observation.previews),
    { maxBytes: budgets.stepBytes },
  );
  const list = previews.find(({ alias }) => alias === null);
  const byAlias = new Map(previews.map((preview) => [preview.alias, preview]));
  const first = shown[0]?.[0];
  return shown.map(([callId, { previews: aliases }]) => [callId, toText(aliases, byAlias, callId === first ? list : undefined)]);
}

/** What has no room of its own is in the list, which stands where the oldest was. */
function toText(aliases: readonly string[], byAlias: ReadonlyMap<string | null, Preview>, list: Preview | undefined): string {
  const own = aliases.flatMap((alias) => byAlias.get(alias)?.json ?? []);
  const texts = [...(list === undefined ? [] : [list.json]), ...own];
  return texts.length > 0 ? texts.join("\n") : JSON.stringify({ alias: aliases[0] });
}

function fitAnswers({ observations, budgets }: ContextOptions): Texts {
  const shown = [...observations.entries()].filter(([, { previews }]) => previews.length === 0);
  let bytes = shown.reduce((sum, [, { text }]) => sum + Buffer.byteLength(text), 0);
  return shown.map(([callId, { text, brief }], index) => {
    if (bytes <= budgets.answerBytes || index === shown.length - 1 || brief.length >= text.length) return [callId, text];
    bytes -= Buffer.byteLength(text) - Buffer.byteLength(brief);
    return [callId, brief];
  });
}

function rewrite(message: ToolModelMessage, observations: Observations, texts: ReadonlyMap<string, string>): ToolModelMessage {
  const content = message.content.map((part) => {
    if (part.type !== "tool-result") return part;
    const observation: Observation | null = observations.get(part.toolCallId);
    const value = texts.get(part.toolCallId);
    if (observation === null || value === undefined)
      return { ...part, output: { type: "error-text" as const, value: toEnvelopeText(part) } };
    return { ...part, output: { type: observation.isError ? ("error-text" as const) : ("text" as const), value } };
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
