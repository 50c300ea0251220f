import type { AssistantModelMessage, ModelMessage } from "ai";
import type { EvidenceStore, Preview } from "../../evidence/evidence-store.ts";
import { omittedArgumentsNote, omittedNote, omittedResultNote } from "../../prompts/turn-prompts.ts";
import { clipText } from "../../text/clip-text.ts";
import type { TurnBudgets } from "../budgets.ts";
import type { ModelCall } from "./ask-model.ts";
import type { CallResult } from "./turn-calls.ts";

/** Everything that the model rereads in each step: earlier exchanges, the question, its own replies, and the results of its calls. */
export interface ModelContext {
  /** Adds the earlier exchanges and the question, or a reply of the model and the calls that it requested. */
  addMessages(messages: readonly ModelMessage[], calls?: readonly StepCall[]): void;
  addResult(callId: string, result: Pick<CallResult, "text" | "status" | "previews" | "brief">): void;
  /**
   * Returns the messages of the next step. First shortens what exceeds its budget, oldest first: previews share one budget, other results another, and
   * the model's own texts a third. Only the context is shortened; the evidence stays complete.
   */
  nextMessages(): ModelMessage[];
  /** Every result as the model read it first, before it was shortened. */
  resultTexts(): Iterable<string>;
}

/** `callId` is unique in the turn. `providerCallId` is the provider's id, which some providers reuse in a later step. */
export type StepCall = ModelCall & { readonly providerCallId: string };

export interface ModelContextOptions {
  readonly evidence: Pick<EvidenceStore, "previewStep">;
  readonly budgets: Pick<TurnBudgets, "previewBytes" | "stepBytes" | "answerBytes" | "saidBytes">;
}

/** Results are looked up by call id when the messages are built, because their texts may have been shortened by then. */
type HistoryEntry = ModelMessage | { readonly role: "results"; readonly calls: readonly StepCall[] };

interface ResultText {
  text: string;
  readonly isError: boolean;
  /** The aliases whose previews make up the text; empty for any other text. */
  readonly previews: readonly string[];
  /** The short form of a text without previews. */
  readonly brief: string;
}

/** Shortens to this share of a budget, so that the next steps change nothing and the provider's prompt cache stays valid. */
const TARGET_SHARE = 0.75;
const BRIEF_CHARACTERS = 600;
/** More than a script can return as result and prints together. */
const MAX_RESULT_CHARACTERS = 163_840;

export function createModelContext({ evidence, budgets }: ModelContextOptions): ModelContext {
  const results = new Map<string, ResultText>();
  const originalTexts: string[] = [];
  let history: HistoryEntry[] = [];

  return {
    addMessages: (messages, calls = []) => void history.push(...messages, { role: "results", calls }),
    addResult(callId, { text, status, previews = [], brief = clipText(text, BRIEF_CHARACTERS, omittedNote) }) {
      results.set(callId, { text, isError: status !== "ok", previews, brief });
      originalTexts.push(text);
    },
    nextMessages() {
      const all = [...results.values()];
      shortenPreviews(all.filter(({ previews }) => previews.length > 0));
      shortenOtherResults(all.filter(({ previews }) => previews.length === 0));
      history = compactMessages(history, budgets.saidBytes);
      return history.flatMap(toMessages);
    },
    resultTexts: () => originalTexts,
  };

  function shortenPreviews(shown: readonly ResultText[]): void {
    if (bytesOfResults(shown) <= budgets.stepBytes) return;
    const previews = evidence.previewStep(
      shown.flatMap((result) => result.previews),
      { maxBytes: Math.floor(budgets.stepBytes * TARGET_SHARE), maxBytesPerOutput: budgets.previewBytes },
    );
    const list = previews.find(({ alias }) => alias === null);
    const byAlias = new Map(previews.map((preview) => [preview.alias, preview]));
    for (const [index, result] of shown.entries()) result.text = joinPreviews(result.previews, byAlias, index === 0 ? list : undefined);
  }

  /** The newest result has a limit of its own. The others are replaced by their brief form, then by a note. */
  function shortenOtherResults(shown: ResultText[]): void {
    const newest = shown.pop();
    if (newest !== undefined) newest.text = clipText(newest.text, MAX_RESULT_CHARACTERS, omittedNote);
    let bytes = bytesOfResults(shown);
    if (bytes <= budgets.answerBytes) return;
    for (const shorten of [({ brief }: ResultText) => brief, () => JSON.stringify({ note: omittedResultNote })])
      for (const result of shown) {
        if (bytes <= budgets.answerBytes * TARGET_SHARE) return;
        const text = shorten(result);
        if (text.length >= result.text.length) continue;
        bytes -= Buffer.byteLength(result.text) - Buffer.byteLength(text);
        result.text = text;
      }
  }

  function toMessages(entry: HistoryEntry): ModelMessage[] {
    if (entry.role !== "results") return [entry];
    if (entry.calls.length === 0) return [];
    const content = entry.calls.map(({ callId, providerCallId, tool }) => {
      const { text, isError } = results.get(callId)!;
      const output = { type: isError ? ("error-text" as const) : ("text" as const), value: text };
      return { type: "tool-result" as const, toolCallId: providerCallId, toolName: tool, output };
    });
    return [{ role: "tool", content }];
  }
}

/** Outputs without room for a preview are in the list, which replaces the oldest text. */
function joinPreviews(aliases: readonly string[], byAlias: ReadonlyMap<string | null, Preview>, list: Preview | undefined): string {
  const own = aliases.flatMap((alias) => byAlias.get(alias)?.json ?? []);
  const texts = [...(list === undefined ? [] : [list.json]), ...own];
  return texts.length > 0 ? texts.join("\n") : JSON.stringify({ alias: aliases[0] });
}

function bytesOfResults(results: readonly ResultText[]): number {
  return results.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

const KEPT_CHARACTERS = 300;
const KEPT_INPUT_CHARACTERS = 2048;

/**
 * Shortens what the model itself wrote, texts and call arguments (including code), oldest first, until it fits. Leaves reasoning unchanged, because
 * providers accept it only complete.
 */
export function compactMessages<Entry extends { readonly role: string }>(messages: readonly Entry[], maxBytes: number): Entry[] {
  const sizes = messages.map(bytesOfMessage);
  let bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes <= maxBytes) return [...messages];
  return messages.map((message, index) => {
    if (!isFromModel(message) || bytes <= maxBytes * TARGET_SHARE) return message;
    const shortened = shortenMessage(message);
    bytes -= sizes[index]! - bytesOfMessage(shortened);
    return shortened;
  });
}

function isFromModel(message: { readonly role: string }): message is AssistantModelMessage {
  return message.role === "assistant";
}

function bytesOfMessage(message: { readonly role: string }): number {
  if (!isFromModel(message)) return 0;
  if (typeof message.content === "string") return Buffer.byteLength(message.content);
  return message.content.reduce((sum, part) => sum + bytesOfPart(part), 0);
}

type Part = Exclude<AssistantModelMessage["content"], string>[number];

function bytesOfPart(part: Part): number {
  if (part.type === "text") return Buffer.byteLength(part.text);
  return part.type === "tool-call" ? Buffer.byteLength(JSON.stringify(part.input) ?? "") : 0;
}

function shortenMessage<Message extends AssistantModelMessage>(message: Message): Message {
  if (typeof message.content === "string") return { ...message, content: clipText(message.content, KEPT_CHARACTERS, omittedNote) };
  const content = message.content.map((part): Part => {
    if (part.type === "text") return { ...part, text: clipText(part.text, KEPT_CHARACTERS, omittedNote) };
    return part.type === "tool-call" ? { ...part, input: shortenInput(part.input) } : part;
  });
  return { ...message, content };
}

/** Returns an object, because providers demand one. */
function shortenInput(input: unknown): unknown {
  const clipStrings = (_key: string, value: unknown): unknown =>
    typeof value === "string" ? clipText(value, KEPT_CHARACTERS, omittedNote) : value;
  const before = JSON.stringify(input) ?? "";
  const after = JSON.stringify(input, clipStrings) ?? "";
  if (before.length === after.length && before.length <= KEPT_INPUT_CHARACTERS) return input;
  return after.length <= KEPT_INPUT_CHARACTERS ? (JSON.parse(after) as unknown) : { note: omittedArgumentsNote(before.length) };
}
