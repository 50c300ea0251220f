import type { Gap, StopReason } from "../../protocol/turn-result.ts";
import type { Turn } from "../open-turn.ts";
import type { StepsEnd } from "../steps/run-steps.ts";
import { findGaps } from "./find-gaps.ts";

/** How a turn ends: why, what is missing, and an answer from what there is, should nobody be able to write a better one. */
export interface TerminalOutcome {
  readonly stopReason: StopReason;
  readonly gaps: readonly Gap[];
  readonly answer: string;
}

export function buildBestEffortTerminalOutcome(turn: Turn, end: StepsEnd): TerminalOutcome {
  const actual = isCapabilityMiss(turn, end) ? missedCapability(turn) : end;
  return { stopReason: actual.stopReason, gaps: findGaps(turn, actual), answer: answerOf(turn) };
}

/** The model came to an end of its own, but what was asked for needs what is not here. */
function isCapabilityMiss({ plan, ledger, gaps }: Turn, { stopReason }: StepsEnd): boolean {
  const hasNoSandbox =
    gaps.some(({ code }) => code === "sandbox_unavailable") || ledger.calls.some(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE");
  return (
    stopReason === "complete_answer" &&
    hasNoSandbox &&
    ledger.cells.length === 0 &&
    plan.chartIntent === "explicit" &&
    ledger.artifacts.length === 0
  );
}

function missedCapability({ ledger }: Turn): StepsEnd {
  const said = ledger.calls.findLast(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE")?.failure?.reason;
  return {
    stopReason: "capability_miss",
    detail: `This needs Python, and no sandbox can be had here.${said === undefined ? "" : ` ${said}`}`,
  };
}

/** What the model wrote, else a list of what there is. */
function answerOf(turn: Turn): string {
  const { ledger } = turn;
  const written = ledger.final?.answer ?? ledger.text;
  return written !== "" ? written : describeFindings(turn);
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
      ({ alias, read, bytes }) =>
        `- ${alias}: ${bytes <= VALUE_CHARACTERS ? new TextDecoder().decode(read()) : `${bytes} bytes of derived data`}`,
    ),
    ...fetched.map(
      ({ alias, tool, shape, bytes }) =>
        `- ${alias}: from ${tool}, ${shape.rows === null ? `${bytes} bytes` : `${shape.rows} ${shape.rows === 1 ? "row" : "rows"}`}`,
    ),
  ].join("\n");
}
