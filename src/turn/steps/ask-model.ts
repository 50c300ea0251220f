import { NoSuchToolError, streamText, ToolChoiceViolationError, type LanguageModel, type ModelMessage, type ToolSet } from "ai";
import { createBreather } from "../../concurrency/create-breather.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import { describeBreak, describeFinish, describeModelFailure } from "../../models/describe-model-failure.ts";
import type { ModelFailure } from "../../protocol/turn-result.ts";
import { describeError } from "../describe-error.ts";
import { addUsage, type Tokens } from "../ledger.ts";

export interface ModelQuestion {
  readonly model: LanguageModel;
  readonly instructions: string;
  readonly messages: ModelMessage[];
  /** Schemas only: the turn runs the calls itself. */
  readonly tools: ToolSet;
  /** The only tool that the model may call now; null for a free choice. */
  readonly forcedTool: string | null;
  /** Counted from 1. */
  readonly step: number;
  /** The usage of the call is added to these counters. */
  readonly tokens: Tokens;
  readonly signal: AbortSignal;
}

export interface ModelReply {
  /** The model's messages for the next step, without the results of its calls. Empty when the call failed. */
  readonly messages: readonly ModelMessage[];
  readonly text: string;
  readonly calls: readonly ModelCall[];
  /** Why the provider or the connection failed; null on success. */
  readonly error: ModelFailure | null;
}

export interface ModelCall {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  /** Why the call cannot run, as far as the reply shows it. */
  readonly problem: { readonly kind: "no_such_tool" | "malformed" | "broken_off"; readonly reason: string } | null;
}

/** Makes one model call. Never rejects; the reply carries the error. */
export async function askModel(question: ModelQuestion): Promise<ModelReply> {
  const { model, instructions, messages, tools, forcedTool, step, tokens, signal } = question;
  const calls: ModelCall[] = [];
  let text = "";
  let error: ModelFailure | null = null;
  try {
    const replies = await orAbort(readStream(), signal);
    if (error === null) return { messages: replies, text, calls, error };
  } catch (cause) {
    error ??= describeModelFailure(cause, model);
  }
  const brokenOff = { kind: "broken_off", reason: "the model's reply ended before the call could run" } as const;
  return { messages: [], text, calls: calls.map((call) => ({ ...call, problem: call.problem ?? brokenOff })), error };

  async function readStream(): Promise<ModelMessage[]> {
    const result = streamText({
      model,
      instructions,
      messages,
      tools,
      ...(forcedTool === null ? {} : { activeTools: [forcedTool], toolChoice: { type: "tool", toolName: forcedTool } }),
      abortSignal: signal,
      maxRetries: 2,
      providerOptions: { sluice: { phase: "step", step: step - 1 } },
      onError: () => {}, // errors are read from the stream
    });
    let isFinished = false;
    const breathe = createBreather();
    for await (const part of result.stream) {
      await breathe();
      if (part.type === "text-delta") text += part.text;
      else if (part.type === "tool-call")
        calls.push({
          callId: part.toolCallId,
          tool: part.toolName,
          input: part.input,
          problem: part.invalid ? toProblem(part.error) : null,
        });
      // A model that ignores the forced tool is not an error: its reply is used as it is.
      else if (part.type === "error" && !ToolChoiceViolationError.isInstance(part.error)) error = describeModelFailure(part.error, model);
      else if (part.type === "finish-step") addUsage(tokens, part.usage);
      else if (part.type === "finish") {
        isFinished = true;
        // With calls, the turn continues: each call gets its own result, and the model can repeat one that was cut off.
        if (calls.length === 0) error ??= describeFinish({ ...part, isEmpty: text === "" }, model);
      } else if (part.type === "abort") signal.throwIfAborted();
    }
    if (!isFinished) error ??= describeBreak(model);
    return error === null ? (await result.responseMessages).filter(({ role }) => role === "assistant") : [];
  }
}

function toProblem(error: unknown): ModelCall["problem"] {
  return { kind: NoSuchToolError.isInstance(error) ? "no_such_tool" : "malformed", reason: describeError(error) };
}
