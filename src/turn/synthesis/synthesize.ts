import { streamText } from "ai";
import type { Gap, StopReason } from "../../protocol/turn-result.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import { describeError } from "../describe-error.ts";
import { describeFinish } from "../describe-finish.ts";
import type { Turn } from "../open-turn.ts";
import type { TerminalOutcome } from "../outcome/build-best-effort-terminal-outcome.ts";
import { overBudget } from "../steps/over-budget.ts";
import { createAnswerChecker, type AnswerChecker } from "./answer-checker.ts";
import { missingSentences } from "./missing-sentences.ts";
import { findUnknownNumbers } from "./numbers/find-unknown-numbers.ts";
import { readShownNumbers } from "./numbers/shown-numbers.ts";
import { synthesisInstructions, toSynthesisPrompt } from "./synthesis-prompt.ts";

export interface Synthesis {
  readonly answer: string;
  readonly stopReason: StopReason;
  readonly gaps: readonly Gap[];
}

/** Writes the answer: by the model where it can be asked, from what there is otherwise. What it left out is added, and what it may not say is left out. */
export async function synthesize(turn: Turn, terminal: TerminalOutcome): Promise<Synthesis> {
  const checker = createAnswerChecker(turn.ledger.artifacts);
  let answer = "";
  const say = (text: string): void => {
    if (text === "") return;
    answer += text;
    turn.emit({ type: "answer-delta", text });
  };

  const written = canAsk(turn, terminal) ? await write(turn, terminal, { checker, say }) : { error: null };
  if (answer.trim() === "") say(checker.push(terminal.answer) + checker.end());
  const end = afterWriting(turn, terminal, written.error);
  const gaps = [...end.gaps, ...ofRemovedClaims(checker), ...ofUnknownNumbers(turn, { answer, gaps: end.gaps })];
  const missing = missingSentences(answer, { artifacts: turn.ledger.artifacts, gaps });
  if (missing.length > 0) say(`${answer.trim() === "" ? "" : "\n\n"}${missing.join("\n")}`);
  return { answer, stopReason: end.stopReason, gaps };
}

/** A provider that just failed, a caller who is gone and a budget that is spent are not asked again. */
function canAsk(turn: Turn, { stopReason }: TerminalOutcome): boolean {
  return stopReason !== "aborted" && stopReason !== "model_error" && !turn.clock.signal.aborted && overBudget(turn) === null;
}

interface Writing {
  readonly checker: AnswerChecker;
  readonly say: (text: string) => void;
}

async function write(turn: Turn, terminal: TerminalOutcome, { checker, say }: Writing): Promise<{ error: string | null }> {
  const { signal } = turn.clock;
  try {
    const error = await orAbort(consume(), signal);
    say(checker.end());
    return { error };
  } catch (error) {
    say(checker.end());
    return { error: describeError(error) };
  }

  async function consume(): Promise<string | null> {
    let failure: string | null = null;
    const result = streamText({
      model: turn.request.model,
      instructions: synthesisInstructions,
      messages: [{ role: "user", content: toSynthesisPrompt(turn, terminal) }],
      abortSignal: signal,
      maxRetries: 1,
      providerOptions: { sluice: { phase: "synthesis" } },
      onError: () => {}, // it is in the stream
    });
    for await (const part of result.stream) {
      if (signal.aborted) break;
      if (part.type === "text-delta") say(checker.push(part.text));
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

/** The turn may have been ended while the answer was written. */
function afterWriting(turn: Turn, terminal: TerminalOutcome, error: string | null): { stopReason: StopReason; gaps: readonly Gap[] } {
  if (error === null) return terminal;
  if (turn.request.signal?.aborted) return ended(terminal, "aborted", "The turn was ended from outside while the answer was written.");
  if (turn.clock.signal.aborted) return ended(terminal, "bounded_time", "The time of this turn was over while the answer was written.");
  const detail = `The answer could not be written to its end: ${error}`;
  const hasDraft = turn.ledger.final !== null || turn.ledger.text !== "";
  return hasDraft
    ? { ...terminal, gaps: [...terminal.gaps, { code: "synthesis_failed", severity: "minor", detail }] }
    : ended(terminal, "model_error", detail);
}

function ended({ gaps }: TerminalOutcome, stopReason: StopReason, detail: string): { stopReason: StopReason; gaps: readonly Gap[] } {
  return { stopReason, gaps: [{ code: stopReason, severity: "major", detail }, ...gaps] };
}

function ofRemovedClaims({ removedClaims }: AnswerChecker): Gap[] {
  if (removedClaims === 0) return [];
  const what = removedClaims === 1 ? "1 statement" : `${removedClaims} statements`;
  return [
    {
      code: "unsupported_claim",
      severity: "minor",
      detail: `${what} about a figure that does not exist ${removedClaims === 1 ? "was" : "were"} left out.`,
    },
  ];
}

const LISTED_NUMBERS = 12;

/** Said and not judged: it may be right, but nothing that was found says so. */
function ofUnknownNumbers(turn: Turn, { answer, gaps }: { answer: string; gaps: readonly Gap[] }): Gap[] {
  let unknown: readonly string[];
  try {
    unknown = findUnknownNumbers(answer, () => readShownNumbers(turn, gaps));
  } catch (error) {
    const detail = `The numbers of the answer could not be held against what was found: ${describeError(error)}`;
    return [{ code: "numbers_not_checked", severity: "info", detail }];
  }
  if (unknown.length === 0) return [];
  const more = unknown.length - LISTED_NUMBERS;
  const listed = `${unknown.slice(0, LISTED_NUMBERS).join("; ")}${more > 0 ? ` and ${more} more` : ""}`;
  const what = unknown.length === 1 ? "This number of the answer stands" : "These numbers of the answer stand";
  return [{ code: "number_not_in_results", severity: "info", detail: `${what} in nothing that was found: ${listed}.` }];
}
