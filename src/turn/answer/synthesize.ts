import { streamText } from "ai";
import { createBreather } from "../../concurrency/create-breather.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import { describeFinish, describeModelFailure, toSentences } from "../../models/describe-model-failure.ts";
import { omittedNote, synthesisInstructions, synthesisPrompt } from "../../prompts/turn-prompts.ts";
import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import { describeChart } from "../../protocol/artifact-reference.ts";
import type { Gap, ModelFailure, StopReason } from "../../protocol/turn-result.ts";
import { clipText } from "../../text/clip-text.ts";
import { describeSpentModelBudget } from "../budgets.ts";
import { asSentence, describeError } from "../describe-error.ts";
import { addUsage } from "../ledger.ts";
import type { TurnParts } from "../turn-request.ts";
import { createAnswerChecker, type AnswerChecker } from "./answer-checker.ts";
import { findNewItems, type TerminalOutcome } from "./build-best-effort-terminal-outcome.ts";
import { checkCoverage } from "./check-coverage.ts";
import { checkNumbers } from "./check-numbers.ts";
import { sanitizeMarkdown } from "./sanitize-markdown.ts";
import { toWords } from "./to-words.ts";

type SynthesisSources = Pick<
  TurnParts,
  "today" | "request" | "conversation" | "earlierAliases" | "plan" | "budgets" | "clock" | "ledger" | "context" | "emit"
>;

/**
 * Writes the final answer with the model, or emits the draft when the model cannot be asked. Removes unsupported claims and unsafe Markdown while it
 * streams, then adds the artifacts and gaps that the answer does not mention.
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
  const found = checkCoverage(turn, { answer, gaps: end.gaps });
  const gaps = [...found, ...reportRemovedClaims(checker), ...checkNumbers(turn, { answer, gaps: found })];
  const missing = findMissingSentences(answer, { artifacts: turn.ledger.artifacts, gaps });
  if (missing.length > 0) {
    const urls = new Set(turn.ledger.artifacts.map(({ url }) => url));
    emitText(`${answer.trim() === "" ? "" : "\n\n"}${sanitizeMarkdown(missing.join("\n"), urls)}`);
  }
  return { answer, stopReason: end.stopReason, failure: end.failure, gaps };
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
): Promise<ModelFailure | null> {
  const { signal } = turn.clock;
  const { model } = turn.request;
  try {
    return await orAbort(readStream(toPrompt(turn, terminal)), signal);
  } catch (error) {
    return describeModelFailure(error, model);
  } finally {
    emitText(checker.end());
  }

  async function readStream(prompt: string | ModelFailure): Promise<ModelFailure | null> {
    if (typeof prompt !== "string") return prompt;
    let failure: ModelFailure | null = null;
    const result = streamText({
      model,
      instructions: synthesisInstructions,
      messages: [{ role: "user", content: prompt }],
      abortSignal: signal,
      maxRetries: 1,
      providerOptions: { sluice: { phase: "synthesis" } },
      onError: () => {}, // errors are read from the stream
    });
    const breathe = createBreather();
    for await (const part of result.stream) {
      if (signal.aborted) break;
      await breathe();
      if (part.type === "text-delta") emitText(checker.push(part.text));
      else if (part.type === "error") failure = describeModelFailure(part.error, model);
      else if (part.type === "finish-step") {
        addUsage(turn.ledger.tokens, part.usage);
        failure ??= describeFinish({ ...part, isEmpty: false }, model);
      }
    }
    return failure;
  }
}

/** The prompt, or why the findings cannot be read, which is no failure of the model. */
function toPrompt(turn: SynthesisSources, terminal: TerminalOutcome): string | ModelFailure {
  try {
    return createPrompt(turn, terminal);
  } catch (error) {
    return { code: "MODEL_FAILED", message: `The findings could not be read: ${asSentence(describeError(error))}`, hint: "Ask again." };
  }
}

const DRAFT_CHARACTERS = 65_536;
const PREVIEW_BYTES = 4096;
const RESULTS_BYTES = 16_384;
const OUTPUTS_BYTES = 8192;

/** Gathers the findings of this turn, each kind within its budget. */
function createPrompt(turn: SynthesisSources, { stopReason, gaps, answer }: TerminalOutcome): string {
  const { request, ledger, conversation } = turn;
  const items = findNewItems(turn);
  const preview = (isIncluded: (source: string) => boolean, maxBytes: number): string[] => {
    const aliases = items.filter(({ source }) => isIncluded(source)).map(({ alias }) => alias);
    if (aliases.length === 0) return [];
    return conversation.evidence.previewStep(aliases, { maxBytes, maxBytesPerOutput: PREVIEW_BYTES }).map(({ json }) => json);
  };
  return synthesisPrompt({
    today: turn.today,
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
function endAfterWriting(turn: SynthesisSources, terminal: TerminalOutcome, error: ModelFailure | null): Omit<TerminalOutcome, "answer"> {
  if (error === null) return terminal;
  if (turn.clock.stopped() === "aborted") return withStop(terminal, "aborted", "The turn was aborted while the answer was being written.");
  if (turn.clock.signal.aborted)
    return withStop(terminal, "bounded_time", "The turn reached its time limit while the answer was being written.");
  const detail = `The final answer could not be completed. ${toSentences(error)}`;
  const hasDraft = turn.ledger.finalResponse !== null || turn.ledger.lastText !== "";
  return hasDraft
    ? { ...terminal, gaps: [...terminal.gaps, { code: "synthesis_failed", severity: "minor", detail }] }
    : { ...withStop(terminal, "model_error", detail), failure: error };
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

/**
 * Returns sentences for the artifacts and gaps that the answer does not mention. A gap counts as mentioned only with its exact sentence, because a similar
 * sentence may say the opposite; stating a gap twice does less harm than omitting it. A sentence that is part of another one is not repeated.
 */
export function findMissingSentences(
  answer: string,
  { artifacts, gaps }: { artifacts: readonly ArtifactEnvelope[]; gaps: readonly Gap[] },
): string[] {
  const answerWords = toWords(answer);
  const missing = [
    ...labelArtifacts(artifacts)
      .filter((artifact) => !mentions(answer, artifact))
      .map(({ label, description }) => `${label}: ${asSentence(description)}`),
    ...gaps.filter(({ detail }) => !answerWords.includes(toWords(detail))).map(({ detail }) => asSentence(detail)),
  ];
  const isPart = (sentence: string): boolean => missing.some((other) => other.length > sentence.length && other.includes(sentence));
  return [...new Set(missing)].filter((sentence) => !isPart(sentence));
}

function mentions(answer: string, { label, artifact }: LabelledArtifact): boolean {
  return (
    new RegExp(`\\b${RegExp.escape(label)}\\b`, "i").test(answer) || answer.includes(artifact.url) || answer.includes(artifact.contentHash)
  );
}

export interface LabelledArtifact {
  /** The name in the answer: `Figure 1`, `Chart 1`. */
  readonly label: string;
  /** The title; without one, the alt text or the columns. */
  readonly description: string;
  readonly artifact: ArtifactEnvelope;
}

export function labelArtifacts(artifacts: readonly ArtifactEnvelope[]): LabelledArtifact[] {
  const counts = { image: 0, chart: 0 };
  return artifacts.map((artifact) => {
    counts[artifact.kind] += 1;
    const label = `${artifact.kind === "image" ? "Figure" : "Chart"} ${counts[artifact.kind]}`;
    const description = artifact.title ?? (artifact.kind === "image" ? artifact.alt : describeChart(artifact.spec));
    return { label, description, artifact };
  });
}
