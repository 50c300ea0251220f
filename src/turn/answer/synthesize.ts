import { streamText } from "ai";
import { orAbort } from "../../concurrency/or-abort.ts";
import { omittedNote, synthesisInstructions, synthesisPrompt } from "../../prompts/turn-prompts.ts";
import type { Gap, StopReason } from "../../protocol/turn-result.ts";
import { clipText } from "../../text/clip-text.ts";
import { describeSpentModelBudget } from "../budgets.ts";
import { describeError, describeFinish } from "../describe-error.ts";
import type { TurnParts } from "../turn-request.ts";
import { createAnswerChecker, type AnswerChecker } from "./answer-checker.ts";
import type { TerminalOutcome } from "./build-best-effort-terminal-outcome.ts";
import { checkNumbers } from "./check-numbers.ts";
import { findMissingSentences, labelArtifacts } from "./missing-sentences.ts";

type SynthesisSources = Pick<
  TurnParts,
  "request" | "conversation" | "earlierAliases" | "plan" | "budgets" | "clock" | "ledger" | "context" | "emit"
>;

/**
 * Writes the final answer with the model, or emits the draft when the model cannot be asked. Removes unsupported claims while it streams, then adds the
 * artifacts and gaps that the answer does not mention.
 */
export async function synthesize(turn: SynthesisSources, terminal: TerminalOutcome): Promise<TerminalOutcome> {
  const checker = createAnswerChecker(turn.ledger.artifacts);
  let answer = "";
  const emitText = (text: string): void => {
    if (text === "") return;
    answer += text;
    turn.emit({ type: "answer-delta", text });
  };

  const error = canAskModel(turn, terminal) ? await writeWithModel(turn, terminal, { checker, emitText }) : null;
  if (answer.trim() === "") emitText(checker.push(terminal.answer) + checker.end());
  const end = endAfterWriting(turn, terminal, error);
  const gaps = [...end.gaps, ...reportRemovedClaims(checker), ...checkNumbers(turn, { answer, gaps: end.gaps })];
  const missing = findMissingSentences(answer, { artifacts: turn.ledger.artifacts, gaps });
  if (missing.length > 0) emitText(`${answer.trim() === "" ? "" : "\n\n"}${missing.join("\n")}`);
  return { answer, stopReason: end.stopReason, gaps };
}

function canAskModel(turn: SynthesisSources, { stopReason }: TerminalOutcome): boolean {
  const isOver = stopReason === "aborted" || stopReason === "model_error" || turn.clock.signal.aborted;
  return !isOver && describeSpentModelBudget(turn.ledger, turn.budgets) === null;
}

/** Returns why the answer is incomplete; null when it is complete. */
async function writeWithModel(
  turn: SynthesisSources,
  terminal: TerminalOutcome,
  { checker, emitText }: { checker: AnswerChecker; emitText: (text: string) => void },
): Promise<string | null> {
  const { signal } = turn.clock;
  try {
    return await orAbort(readStream(), signal);
  } catch (error) {
    return describeError(error);
  } finally {
    emitText(checker.end());
  }

  async function readStream(): Promise<string | null> {
    let failure: string | null = null;
    const result = streamText({
      model: turn.request.model,
      instructions: synthesisInstructions,
      messages: [{ role: "user", content: createPrompt(turn, terminal) }],
      abortSignal: signal,
      maxRetries: 1,
      providerOptions: { sluice: { phase: "synthesis" } },
      onError: () => {}, // errors are read from the stream
    });
    for await (const part of result.stream) {
      if (signal.aborted) break;
      if (part.type === "text-delta") emitText(checker.push(part.text));
      else if (part.type === "error") failure = describeError(part.error);
      else if (part.type === "finish-step") {
        turn.ledger.tokens.input += part.usage.inputTokens ?? 0;
        turn.ledger.tokens.output += part.usage.outputTokens ?? 0;
        failure ??= describeFinish(part.finishReason);
      }
    }
    return failure;
  }
}

const DRAFT_CHARACTERS = 65_536;
const PREVIEW_BYTES = 4096;
const RESULTS_BYTES = 16_384;
const OUTPUTS_BYTES = 8192;

/** Gathers the findings of this turn, each kind within its budget. */
function createPrompt(
  { request, ledger, earlierAliases, conversation }: SynthesisSources,
  { stopReason, gaps, answer }: TerminalOutcome,
): string {
  const { evidence } = conversation;
  const before = new Set(earlierAliases);
  const items = evidence
    .aliases()
    .filter((alias) => !before.has(alias))
    .map((alias) => evidence.get(alias)!);
  const preview = (isIncluded: (source: string) => boolean, maxBytes: number): string[] => {
    const aliases = items.filter(({ source }) => isIncluded(source)).map(({ alias }) => alias);
    if (aliases.length === 0) return [];
    return evidence.previewStep(aliases, { maxBytes, maxBytesPerOutput: PREVIEW_BYTES }).map(({ json }) => json);
  };
  return synthesisPrompt({
    question: request.question,
    stopReason,
    draft: clipText(answer, DRAFT_CHARACTERS, omittedNote),
    results: preview((source) => source === "result", RESULTS_BYTES),
    outputs: preview((source) => source !== "result", OUTPUTS_BYTES),
    figures: labelArtifacts(ledger.artifacts).map(({ label, description }) => `${label}: ${description}`),
    gaps,
  });
}

/** The turn may have been aborted, timed out or failed while the answer was being written. */
function endAfterWriting(turn: SynthesisSources, terminal: TerminalOutcome, error: string | null): Omit<TerminalOutcome, "answer"> {
  if (error === null) return terminal;
  if (turn.clock.stopped() === "aborted") return withStop(terminal, "aborted", "The turn was aborted while the answer was being written.");
  if (turn.clock.signal.aborted)
    return withStop(terminal, "bounded_time", "The turn reached its time limit while the answer was being written.");
  const detail = `The final answer could not be completed: ${error}`;
  const hasDraft = turn.ledger.finalResponse !== null || turn.ledger.lastText !== "";
  return hasDraft
    ? { ...terminal, gaps: [...terminal.gaps, { code: "synthesis_failed", severity: "minor", detail }] }
    : withStop(terminal, "model_error", detail);
}

function withStop({ gaps }: TerminalOutcome, stopReason: StopReason, detail: string): Omit<TerminalOutcome, "answer"> {
  return { stopReason, gaps: [{ code: stopReason, severity: "major", detail }, ...gaps] };
}

function reportRemovedClaims({ removedClaims }: AnswerChecker): Gap[] {
  if (removedClaims === 0) return [];
  const statements = removedClaims === 1 ? "1 statement" : `${removedClaims} statements`;
  const detail = `${statements} about a figure that does not exist ${removedClaims === 1 ? "was" : "were"} removed.`;
  return [{ code: "unsupported_claim", severity: "minor", detail }];
}
