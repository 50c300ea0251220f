import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { Conversation } from "../create-conversation.ts";
import { describeError } from "../describe-error.ts";
import type { TurnParts } from "../turn-request.ts";
import { readItemText } from "./build-best-effort-terminal-outcome.ts";
import { createKnownNumbers, findUnknownNumbers, type KnownNumbers } from "./find-unknown-numbers.ts";

type NumberSources = Pick<TurnParts, "request" | "conversation" | "context" | "ledger" | "plan">;

const LISTED_NUMBERS = 12;

/** Reports numbers of the answer that appear in nothing the model has read. The severity is info, because such a number may still be right. */
export function checkNumbers(turn: NumberSources, { answer, gaps }: { answer: string; gaps: readonly Gap[] }): Gap[] {
  let unknown: readonly string[];
  try {
    unknown = findUnknownNumbers(answer, () => collectKnownNumbers(turn, gaps));
  } catch (error) {
    const detail = `The numbers in the answer could not be checked: ${describeError(error)}`;
    return [{ code: "numbers_not_checked", severity: "info", detail }];
  }
  if (unknown.length === 0) return [];
  const more = unknown.length - LISTED_NUMBERS;
  const listed = `${unknown.slice(0, LISTED_NUMBERS).join("; ")}${more > 0 ? ` and ${more} more` : ""}`;
  const subject = unknown.length === 1 ? "This number appears" : "These numbers appear";
  return [{ code: "number_not_in_results", severity: "info", detail: `${subject} in no tool result: ${listed}.` }];
}

/** Results beyond this size are not read again. */
const MAX_RESULT_BYTES = 512 * 1024;
const MAX_DRAWN_VALUES = 50_000;

/** Collects the numbers that an answer may use: everything the model has read or requested, all results, and the drawn values. */
function collectKnownNumbers({ request, conversation, context, ledger, plan }: NumberSources, gaps: readonly Gap[]): KnownNumbers {
  const known = createKnownNumbers();
  const texts = [
    request.question,
    ...plan.measures,
    plan.population,
    ...conversation.exchanges.flatMap((exchange) => [exchange.question, exchange.answer]),
    ...context.resultTexts(),
    ...ledger.calls.filter(({ tool }) => tool !== "final_response").map(({ input }) => JSON.stringify(input) ?? ""),
    ...gaps.map(({ detail }) => detail),
    ...readResults(conversation),
  ];
  for (const text of texts) known.addText(text);
  known.addValues(readDrawnValues(ledger.artifacts));
  return known;
}

/** Newest first, as far as the size limit allows. */
function* readResults({ evidence }: Conversation): Generator<string> {
  let bytesLeft = MAX_RESULT_BYTES;
  for (const alias of evidence.aliases().toReversed()) {
    const item = evidence.get(alias)!;
    if (item.source !== "result" || item.bytes > bytesLeft) continue;
    bytesLeft -= item.bytes;
    yield readItemText(item) ?? "";
  }
}

function* readDrawnValues(artifacts: readonly ArtifactEnvelope[]): Generator<number> {
  let valuesLeft = MAX_DRAWN_VALUES;
  for (const artifact of artifacts) {
    const rows = artifact.kind === "chart" ? artifact.data : (artifact.figure?.axes ?? []).flatMap(({ series }) => series);
    for (const values of rows.flatMap((row) => Object.values(row)).map((value) => (Array.isArray(value) ? value : [value])))
      for (const value of values) if (typeof value === "number" && valuesLeft-- > 0) yield value;
  }
}
