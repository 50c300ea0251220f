import { NoSuchToolError, streamText, type ModelMessage, type ToolSet } from "ai";
import { orAbort } from "../../waiting/or-abort.ts";
import { describeError } from "../describe-error.ts";
import { describeFinish } from "../describe-finish.ts";
import type { Turn } from "../open-turn.ts";

export interface StepCall {
  readonly instructions: string;
  readonly messages: ModelMessage[];
  readonly tools: ToolSet;
  /** The one tool that may be called now. */
  readonly forced: string | null;
}

export interface StepEnd {
  /** What the model said and what its tools answered, to go on from. */
  readonly messages: readonly ModelMessage[];
  readonly text: string;
  readonly toolCalls: readonly {
    readonly callId: string;
    readonly tool: string;
    readonly input: unknown;
    /** Why it reached no tool, as far as the SDK knows. */
    readonly problem: { readonly kind: "no_such_tool" | "malformed"; readonly reason: string } | null;
  }[];
  /** The provider failed, or the connection to it. */
  readonly error: string | null;
}

/** One model call, with the tools that it asks for. It never rejects: what went wrong is in the end of the step. */
export async function runStep(turn: Turn, call: StepCall): Promise<StepEnd> {
  const { stepsSignal } = turn.clock;
  const seen: { text: string; toolCalls: StepEnd["toolCalls"][number][]; error: string | null } = { text: "", toolCalls: [], error: null };
  try {
    return await orAbort(consume(), stepsSignal);
  } catch (error) {
    return { messages: [], ...seen, error: seen.error ?? describeError(error) };
  }

  async function consume(): Promise<StepEnd> {
    const { instructions, messages, tools, forced } = call;
    const result = streamText({
      model: turn.request.model,
      instructions,
      messages,
      tools,
      ...(forced === null ? {} : { activeTools: [forced], toolChoice: { type: "tool", toolName: forced } }),
      abortSignal: stepsSignal,
      maxRetries: 2,
      providerOptions: { sluice: { phase: "step", step: turn.ledger.steps - 1 } },
      onError: () => {}, // it is in the stream
    });
    let isOver = false;
    for await (const part of result.stream) {
      if (part.type === "text-delta") seen.text += part.text;
      else if (part.type === "tool-call")
        seen.toolCalls.push({
          callId: part.toolCallId,
          tool: part.toolName,
          input: part.input,
          problem: part.invalid === true ? toProblem(part.error) : null,
        });
      else if (part.type === "error" && !isViolation(part.error)) seen.error = describeError(part.error);
      else if (part.type === "finish-step") {
        turn.ledger.tokens.input += part.usage.inputTokens ?? 0;
        turn.ledger.tokens.output += part.usage.outputTokens ?? 0;
      } else if (part.type === "finish") {
        isOver = true;
        // Calls are answered each for itself, also one that was cut off: the model can make it again, shorter.
        if (seen.toolCalls.length === 0) seen.error ??= describeFinish(part.finishReason);
      }
      if (part.type === "abort") stepsSignal.throwIfAborted();
    }
    if (!isOver || seen.error !== null)
      return { messages: [], ...seen, error: seen.error ?? "The model's answer ended before it was whole." };
    return { ...seen, messages: await result.responseMessages };
  }
}

function toProblem(error: unknown): StepEnd["toolCalls"][number]["problem"] {
  return { kind: NoSuchToolError.isInstance(error) ? "no_such_tool" : "malformed", reason: describeError(error) };
}

/** The model did something else than it was told. What it did is read as it is. */
function isViolation(error: unknown): boolean {
  return error instanceof Error && error.name === "AI_ToolChoiceViolationError";
}
