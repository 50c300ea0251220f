import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { ModelPhase, ModelScript, ScriptStep } from "./model-settings.ts";

type Answer = Pick<LanguageModelV4GenerateResult, "content" | "finishReason" | "usage">;

/**
 * A language model that says what its script says, over the same interface as any other. Which part of the script a call is for is what the caller says in
 * `providerOptions.sluice` (`phase`, and `step` counted from 0), or else what can be told from the call: structured output is the plan, tools are a step.
 * Without `step`, steps are counted here, and a planning call begins anew: then one model serves one turn at a time.
 */
export function createScriptedModel(script: ModelScript, { modelId = "script" }: { modelId?: string } = {}): LanguageModelV4 {
  let next = 0;

  function answer(options: LanguageModelV4CallOptions): Answer {
    options.abortSignal?.throwIfAborted();
    switch (phaseOf(options, script)) {
      case "plan":
        next = 0;
        return toAnswer({ text: JSON.stringify(script.plan ?? {}) }, "plan");
      case "synthesis":
        return toAnswer({ text: script.synthesis ?? lastText(script) }, "synthesis");
      case "step": {
        const index = stepOf(options) ?? next;
        next = index + 1;
        return toAnswer(obeying(script.steps[Math.min(index, script.steps.length - 1)]!, options, script), String(index));
      }
    }
  }

  return {
    specificationVersion: "v4",
    provider: "sluice.script",
    modelId,
    supportedUrls: {},
    doGenerate: async (options) => ({ ...answer(options), warnings: [], response: { modelId } }),
    doStream: async (options) => ({ stream: toStream(answer(options), modelId, options.abortSignal) }),
  };
}

function phaseOf({ providerOptions, responseFormat, tools = [] }: LanguageModelV4CallOptions, script: ModelScript): ModelPhase {
  const said = providerOptions?.["sluice"]?.["phase"];
  if (said === "plan" || said === "step" || said === "synthesis") return said;
  if (responseFormat?.type === "json") return "plan";
  return tools.length === 0 && script.synthesis !== undefined ? "synthesis" : "step";
}

function stepOf({ providerOptions }: LanguageModelV4CallOptions): number | null {
  const said = providerOptions?.["sluice"]?.["step"];
  return Number.isSafeInteger(said) && Number(said) >= 0 ? Number(said) : null;
}

/** Where `final_response` is forced, the script's answer is given through it. Any other force is not a script's to obey. */
function obeying(step: ScriptStep, { toolChoice }: LanguageModelV4CallOptions, script: ModelScript): ScriptStep {
  const isForced = toolChoice?.type === "tool" && toolChoice.toolName === "final_response";
  if (!isForced || step.toolCalls?.some(({ tool }) => tool === "final_response")) return step;
  const text = step.toolCalls === undefined ? step.text : undefined;
  return { toolCalls: [{ tool: "final_response", input: { answer: text ?? script.synthesis ?? lastText(script) } }] };
}

/** What it said last, in words or through `final_response`. */
function lastText({ steps }: ModelScript): string {
  return steps.map((step) => step.text ?? finalAnswerOf(step)).findLast((text) => text !== undefined) ?? "The script has no answer.";
}

function finalAnswerOf(step: ScriptStep): string | undefined {
  const { answer } = (step.toolCalls?.find(({ tool }) => tool === "final_response")?.input ?? {}) as { answer?: unknown };
  return typeof answer === "string" ? answer : undefined;
}

function toAnswer(step: ScriptStep, id: string): Answer {
  const { text, toolCalls: calls = [], usage: { inputTokens = 0, outputTokens = 0 } = {} } = step;
  const content: LanguageModelV4Content[] = [
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...calls.map(({ tool, input }, index) => ({
      type: "tool-call" as const,
      toolCallId: `call-${id}-${index}`,
      toolName: tool,
      input: JSON.stringify(input),
    })),
  ];
  const reason = calls.length > 0 ? "tool-calls" : "stop";
  return {
    content,
    finishReason: { unified: reason, raw: reason },
    usage: {
      inputTokens: { total: inputTokens, noCache: inputTokens, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: outputTokens, text: outputTokens, reasoning: 0 },
    },
  };
}

function toStream(
  { content, finishReason, usage }: Answer,
  modelId: string,
  signal?: AbortSignal,
): ReadableStream<LanguageModelV4StreamPart> {
  const parts: LanguageModelV4StreamPart[] = [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", modelId },
    ...content.flatMap((part, index) => toParts(part, String(index))),
    { type: "finish", finishReason, usage },
  ];
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      if (signal?.aborted) return controller.error(signal.reason);
      controller.enqueue(parts[sent]!);
      sent += 1;
      if (sent === parts.length) controller.close();
    },
  });
}

/** Texts come a few words at a time, inputs in pieces, as from a real one. */
function toParts(part: LanguageModelV4Content, id: string): LanguageModelV4StreamPart[] {
  if (part.type === "text") {
    const deltas = piecesOf(part.text, 12).map((delta) => ({ type: "text-delta" as const, id, delta }));
    return [{ type: "text-start", id }, ...deltas, { type: "text-end", id }];
  }
  if (part.type !== "tool-call") return [];
  const { toolCallId, toolName, input } = part;
  const deltas = piecesOf(input, 2_000).map((delta) => ({ type: "tool-input-delta" as const, id: toolCallId, delta }));
  return [{ type: "tool-input-start", id: toolCallId, toolName }, ...deltas, { type: "tool-input-end", id: toolCallId }, part];
}

/** Of at least so many characters, ending after a space where there is one. A surrogate pair is never cut, since a piece ends at white space or the end. */
function piecesOf(text: string, length: number): string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${length}}\\S*\\s?`, "gu")) ?? [];
}
