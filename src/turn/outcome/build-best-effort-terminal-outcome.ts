import type { Gap, StopReason } from "../../protocol/turn-result.ts";
import type { Turn } from "../open-turn.ts";
import { describeError } from "../describe-error.ts";
import { readItemText } from "../read-item-text.ts";
import type { StepsEnd } from "../steps/run-steps.ts";
import { findGaps, ofEnd } from "./find-gaps.ts";

/** How a turn ends: why, what is missing, and an answer from what there is, should nobody be able to write a better one. */
export interface TerminalOutcome {
  readonly stopReason: StopReason;
  readonly gaps: readonly Gap[];
  readonly answer: string;
}

/** An outcome there is, whatever cannot be read any more by now: then it says what it could not find out. */
export function buildBestEffortTerminalOutcome(turn: Turn, end: StepsEnd): TerminalOutcome {
  const { stopReason } = end;
  try {
    return { stopReason, gaps: findGaps(turn, end), answer: answerOf(turn) };
  } catch (error) {
    const detail = `What is missing could not be found out to the end: ${describeError(error)}`;
    const unknown: Gap = { code: "gaps_unknown", severity: "major", detail };
    const gaps = [...ofEnd(end), unknown, ...turn.serverGaps, ...turn.gaps];
    return { stopReason, gaps, answer: writtenBy(turn) || "The question could not be answered." };
  }
}

/** What the model wrote, else a list of what there is. */
function answerOf(turn: Turn): string {
  return writtenBy(turn) || describeFindings(turn);
}

function writtenBy({ ledger }: Turn): string {
  return ledger.final?.answer ?? ledger.text;
}

const LISTED = 12;
const VALUE_CHARACTERS = 400;

function describeFindings({ ledger, conversation, earlierAliases }: Turn): string {
  const before = new Set(earlierAliases);
  const items = conversation.evidence
    .aliases()
    .filter((alias) => !before.has(alias))
    .flatMap((alias) => conversation.evidence.get(alias) ?? []);
  const results = items.filter(({ source }) => source === "result").slice(-LISTED);
  const fetched = items.filter(({ source, partOf }) => source !== "result" && partOf === undefined).slice(-LISTED);
  if (items.length === 0 && ledger.artifacts.length === 0)
    return "The question could not be answered: nothing was found before the turn ended.";
  return [
    "The question was not answered fully. This is what there is:",
    ...results.map(
      (item) => `- ${item.alias}: ${(item.bytes <= VALUE_CHARACTERS ? readItemText(item) : null) ?? `${item.bytes} bytes of derived data`}`,
    ),
    ...fetched.map(
      ({ alias, tool, shape, bytes }) =>
        `- ${alias}: from ${tool}, ${shape.rows === null ? `${bytes} bytes` : `${shape.rows} ${shape.rows === 1 ? "row" : "rows"}`}`,
    ),
  ].join("\n");
}
