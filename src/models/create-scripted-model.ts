import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { ModelPhase, ModelScript, ScriptStep } from "./model-script.ts";

/** A script, or a function that chooses one by the call. */
type ScriptSource = ModelScript | ((options: LanguageModelV4CallOptions) => ModelScript);

type Reply = Pick<LanguageModelV4GenerateResult, "content" | "finishReason" | "usage">;

/**
 * Creates a language model that replies from a script. `providerOptions.sluice` selects the reply: `phase`, and `step` counted from 0. Without a phase,
 * a call for structured output is the plan and a call with tools is a step. Without `step`, the model counts the steps itself and a planning call
 * restarts the count, so it can serve only one turn at a time.
 */
export function createScriptedModel(source: ScriptSource, { modelId = "script" }: { modelId?: string } = {}): LanguageModelV4 {
  let nextStep = 0;

  function reply(options: LanguageModelV4CallOptions): Reply {
    options.abortSignal?.throwIfAborted();
    const script = typeof source === "function" ? source(options) : source;
    switch (readPhase(options, script)) {
      case "plan":
        nextStep = 0;
        return toReply({ text: JSON.stringify(script.plan ?? {}) }, "plan");
      case "synthesis":
        return toReply({ text: script.synthesis ?? lastText(script) }, "synthesis");
      case "step": {
        const index = readStep(options) ?? nextStep;
        nextStep = index + 1;
        return toReply(withForcedFinalResponse(script.steps[Math.min(index, script.steps.length - 1)]!, options, script), String(index));
      }
    }
  }

  return {
    specificationVersion: "v4",
    provider: "sluice.script",
    modelId,
    supportedUrls: {},
    doGenerate: async (options) => ({ ...reply(options), warnings: [], response: { modelId } }),
    doStream: async (options) => ({ stream: toStream(reply(options), modelId, options.abortSignal) }),
  };
}

function readPhase({ providerOptions, responseFormat, tools = [] }: LanguageModelV4CallOptions, script: ModelScript): ModelPhase {
  const phase = providerOptions?.["sluice"]?.["phase"];
  if (phase === "plan" || phase === "step" || phase === "synthesis") return phase;
  if (responseFormat?.type === "json") return "plan";
  return tools.length === 0 && script.synthesis !== undefined ? "synthesis" : "step";
}

function readStep({ providerOptions }: LanguageModelV4CallOptions): number | null {
  const step = providerOptions?.["sluice"]?.["step"];
  return Number.isSafeInteger(step) && Number(step) >= 0 ? Number(step) : null;
}

/** When `final_response` is forced, the script's answer is sent through it. Any other forced tool is ignored. */
function withForcedFinalResponse(step: ScriptStep, { toolChoice }: LanguageModelV4CallOptions, script: ModelScript): ScriptStep {
  const isForced = toolChoice?.type === "tool" && toolChoice.toolName === "final_response";
  if (!isForced || step.toolCalls?.some(({ tool }) => tool === "final_response")) return step;
  const text = step.toolCalls === undefined ? step.text : undefined;
  return { toolCalls: [{ tool: "final_response", input: { answer: text ?? script.synthesis ?? lastText(script) } }] };
}

/** The last answer of the script, as text or through `final_response`. */
function lastText({ steps }: ModelScript): string {
  return steps.map((step) => step.text ?? finalAnswerOf(step)).findLast((text) => text !== undefined) ?? "The script has no answer.";
}

function finalAnswerOf(step: ScriptStep): string | undefined {
  const { answer } = (step.toolCalls?.find(({ tool }) => tool === "final_response")?.input ?? {}) as { answer?: unknown };
  return typeof answer === "string" ? answer : undefined;
}

function toReply(step: ScriptStep, id: string): Reply {
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
  { content, finishReason, usage }: Reply,
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

/** Streams texts a few words at a time and inputs in pieces, as a real provider does. */
function toParts(part: LanguageModelV4Content, id: string): LanguageModelV4StreamPart[] {
  if (part.type === "text") {
    const deltas = (part.text.match(FEW_WORDS) ?? []).map((delta) => ({ type: "text-delta" as const, id, delta }));
    return [{ type: "text-start", id }, ...deltas, { type: "text-end", id }];
  }
  if (part.type !== "tool-call") return [];
  const { toolCallId, toolName, input } = part;
  const deltas = (input.match(TWO_KILOBYTES) ?? []).map((delta) => ({ type: "tool-input-delta" as const, id: toolCallId, delta }));
  return [{ type: "tool-input-start", id: toolCallId, toolName }, ...deltas, { type: "tool-input-end", id: toolCallId }, part];
}

/** Each piece ends at white space or at the end, so a surrogate pair is never cut. */
const FEW_WORDS = /[^]{1,12}\S*\s?/gu;
const TWO_KILOBYTES = /[^]{1,2000}\S*\s?/gu;
