import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { TurnParts } from "../turn-request.ts";
import type { Conversation } from "../create-conversation.ts";
import { readItemText } from "./build-best-effort-terminal-outcome.ts";
import { createKnownNumbers, type KnownNumbers } from "./find-unknown-numbers.ts";

/** Of results, which are the turn's own numbers; more than this of them is not read again. */
const RESULTS_BYTES = 512 * 1024;
/** Of what was drawn. */
const DRAWN_VALUES = 50_000;

/** Where a number of an answer may come from: all that the model was told or asked for in this turn, its results, and what they were drawn as. */
export function readShownNumbers(
  { request, conversation, observations, ledger, plan }: Pick<TurnParts, "request" | "conversation" | "observations" | "ledger" | "plan">,
  gaps: readonly Gap[],
): KnownNumbers {
  const known = createKnownNumbers();
  const texts = [
    request.question,
    ...plan.measures,
    plan.population,
    ...conversation.exchanges.flatMap((earlier) => [earlier.question, earlier.answer]),
    ...observations.texts(),
    ...ledger.calls.filter(({ tool }) => tool !== "final_response").map(({ input }) => JSON.stringify(input) ?? ""),
    ...gaps.map(({ detail }) => detail),
    ...readResults(conversation),
  ];
  for (const text of texts) known.addText(text);
  known.addValues(readDrawn(ledger.artifacts));
  return known;
}

function* readResults({ evidence }: Conversation): Generator<string> {
  let left = RESULTS_BYTES;
  for (const alias of evidence.aliases().toReversed()) {
    const item = evidence.get(alias)!;
    if (item.source !== "result" || item.bytes > left) continue;
    left -= item.bytes;
    yield readItemText(item) ?? "";
  }
}

function* readDrawn(artifacts: readonly ArtifactEnvelope[]): Generator<number> {
  let left = DRAWN_VALUES;
  for (const artifact of artifacts) {
    const drawn = artifact.kind === "chart" ? artifact.data : (artifact.figure?.axes ?? []).flatMap(({ series }) => series);
    for (const values of drawn.flatMap((one) => Object.values(one)).map((value) => (Array.isArray(value) ? value : [value])))
      for (const value of values) if (typeof value === "number" && left-- > 0) yield value;
  }
}
