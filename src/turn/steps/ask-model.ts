import { NoSuchToolError, streamText, ToolChoiceViolationError, type LanguageModel, type ModelMessage, type ToolSet } from "ai";
import { orAbort } from "../../concurrency/or-abort.ts";
import { describeError, describeFinish } from "../describe-error.ts";
import type { Tokens } from "../ledger.ts";

export interface ModelQuestion {
  readonly model: LanguageModel;
  readonly instructions: string;
  readonly messages: ModelMessage[];
  /** Schemas only: the calls are run by `runTool`. */
  readonly tools: ToolSet;
  /** The one tool that may be called now. */
  readonly forced: string | null;
  /** Counted from 1. */
  readonly step: number;
  /** What it cost is added here. */
  readonly tokens: Tokens;
  readonly signal: AbortSignal;
}

export interface ModelReply {
  /** What the model said, to go on from; the answers of its calls are not among it. */
  readonly messages: readonly ModelMessage[];
  readonly text: string;
  readonly calls: readonly AskedCall[];
  /** The provider failed, or the connection to it. */
  readonly error: string | null;
}

export interface AskedCall {
  /** The provider's own, which some use again in a later step. */
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  /** Why it cannot be run, as far as can be told from the model's answer. */
  readonly problem: { readonly kind: "no_such_tool" | "malformed" | "broken_off"; readonly reason: string } | null;
}

/** One model call. Never rejects: what went wrong is in the reply. */
export async function askModel(question: ModelQuestion): Promise<ModelReply> {
  const { model, instructions, messages, tools, forced, step, tokens, signal } = question;
  const calls: AskedCall[] = [];
  let text = "";
  let error: string | null = null;
  try {
    const said = await orAbort(consume(), signal);
    if (error === null) return { messages: said, text, calls, error };
  } catch (cause) {
    error ??= describeError(cause);
  }
  const broken = { kind: "broken_off", reason: "the model's answer broke off before it was called" } as const;
  return { messages: [], text, calls: calls.map((call) => ({ ...call, problem: call.problem ?? broken })), error };

  async function consume(): Promise<ModelMessage[]> {
    const result = streamText({
      model,
      instructions,
      messages,
      tools,
      ...(forced === null ? {} : { activeTools: [forced], toolChoice: { type: "tool", toolName: forced } }),
      abortSignal: signal,
      maxRetries: 2,
      providerOptions: { sluice: { phase: "step", step: step - 1 } },
      onError: () => {}, // it is in the stream
    });
    let isOver = false;
    for await (const part of result.stream) {
      if (part.type === "text-delta") text += part.text;
      else if (part.type === "tool-call")
        calls.push({
          callId: part.toolCallId,
          tool: part.toolName,
          input: part.input,
          problem: part.invalid ? toProblem(part.error) : null,
        });
      // The model did something else than it was told. What it did is read as it is.
      else if (part.type === "error" && !ToolChoiceViolationError.isInstance(part.error)) error = describeError(part.error);
      else if (part.type === "finish-step") {
        tokens.input += part.usage.inputTokens ?? 0;
        tokens.output += part.usage.outputTokens ?? 0;
      } else if (part.type === "finish") {
        isOver = true;
        // Calls are answered each for itself, also one that was cut off: the model can make it again, shorter.
        if (calls.length === 0) error ??= describeFinish(part.finishReason);
      } else if (part.type === "abort") signal.throwIfAborted();
    }
    if (!isOver) error ??= "The model's answer ended before it was whole.";
    return error === null ? (await result.responseMessages).filter(({ role }) => role === "assistant") : [];
  }
}

function toProblem(error: unknown): AskedCall["problem"] {
  return { kind: NoSuchToolError.isInstance(error) ? "no_such_tool" : "malformed", reason: describeError(error) };
}
