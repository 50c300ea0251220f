import type { EvidenceItem } from "../../evidence/evidence-store.ts";
import { coverageEventSchema, describeCoverageEvent, type CoverageEvent } from "../../protocol/coverage-event.ts";
import type { TurnPlan } from "../../protocol/turn-plan.ts";
import type { Gap, ModelFailure, StopReason } from "../../protocol/turn-result.ts";
import type { TurnParts } from "../turn-request.ts";
import type { Conversation } from "../create-conversation.ts";
import { asSentence, describeError } from "../describe-error.ts";
import type { CallRecord, Ledger } from "../ledger.ts";
import type { StepsEnd } from "../steps/run-steps.ts";

/** How a turn ends: the stop reason, the gaps, and a draft of the answer, which is used when synthesis fails. */
export interface TerminalOutcome {
  readonly stopReason: StopReason;
  readonly gaps: readonly Gap[];
  readonly answer: string;
  /** With `model_error`, why the model failed. */
  readonly failure?: ModelFailure | undefined;
}

type OutcomeSources = Pick<TurnParts, "ledger" | "conversation" | "plan" | "earlierAliases">;

/** Builds the end of a turn from its ledger. Never throws: evidence that cannot be read is reported as a gap. */
export function buildBestEffortTerminalOutcome(turn: OutcomeSources, end: StepsEnd): TerminalOutcome {
  const { stopReason, failure } = end;
  const { ledger } = turn;
  const written = ledger.finalResponse ?? ledger.lastText;
  try {
    return { stopReason, failure, gaps: findGaps(turn, end), answer: written || describeFindings(turn, end) };
  } catch (error) {
    const detail = `The gaps could not be determined: ${describeError(error)}`;
    const unknown: Gap = { code: "gaps_unknown", severity: "major", detail };
    const gaps = [...toEndGap(end), unknown, ...ledger.serverGaps, ...ledger.gaps];
    return { stopReason, failure, gaps, answer: written || "The question could not be answered." };
  }
}

const LISTED = 12;
const VALUE_CHARACTERS = 400;

/** Empty when the model failed before anything was found: its failure is the whole answer then. */
function describeFindings(turn: OutcomeSources, { failure }: StepsEnd): string {
  const items = findNewItems(turn);
  const results = items.filter(({ source }) => source === "result").slice(-LISTED);
  const fetched = items.filter(({ source, partOf }) => source !== "result" && partOf === undefined).slice(-LISTED);
  if (items.length === 0 && turn.ledger.artifacts.length === 0)
    return failure !== undefined ? "" : "The question could not be answered: nothing was found before the turn ended.";
  return [
    "The question was not fully answered. Available results:",
    ...results.map(
      (item) => `- ${item.alias}: ${(item.bytes <= VALUE_CHARACTERS ? readItemText(item) : null) ?? `${item.bytes} bytes of derived data`}`,
    ),
    ...fetched.map(
      ({ alias, tool, shape, bytes }) =>
        `- ${alias}: from ${tool}, ${shape.rows === null ? `${bytes} bytes` : `${shape.rows} ${shape.rows === 1 ? "row" : "rows"}`}`,
    ),
  ].join("\n");
}

/** The evidence of this turn, oldest first. */
export function findNewItems({
  conversation: { evidence },
  earlierAliases,
}: Pick<TurnParts, "conversation" | "earlierAliases">): EvidenceItem[] {
  const earlier = new Set(earlierAliases);
  const aliases = evidence.aliases().filter((alias) => !earlier.has(alias));
  return aliases.flatMap((alias) => evidence.get(alias) ?? []);
}

/** Null when the content cannot be read, for example because its file was deleted. */
export function readItemText(item: EvidenceItem): string | null {
  try {
    return new TextDecoder().decode(item.read());
  } catch {
    return null;
  }
}

/** Everything that was asked for and not delivered, most severe first. */
function findGaps({ ledger, conversation, plan }: Omit<OutcomeSources, "earlierAliases">, end: StepsEnd): Gap[] {
  const gaps = [
    ...toEndGap(end),
    ...findMissingChart(plan, ledger, end),
    ...findFlawedDrawings(ledger),
    ...ledger.serverGaps,
    ...ledger.gaps,
    ...findCoverageEvents({ ledger, conversation }),
  ];
  const order = { major: 0, minor: 1, info: 2 } as const;
  return gaps.sort((a, b) => order[a.severity] - order[b.severity]);
}

function toEndGap({ stopReason, detail }: StepsEnd): Gap[] {
  return detail === null ? [] : [{ code: stopReason, severity: "major", detail }];
}

const drawingTools: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit", "render_chart"]);

/** A requested chart that was not drawn is a gap, whatever ended the turn. The detail names the last obstacle. */
function findMissingChart(plan: TurnPlan, ledger: Ledger, end: StepsEnd): Gap[] {
  if (plan.chartIntent !== "explicit" || ledger.artifacts.length > 0) return [];
  const last = ledger.calls.findLast(({ tool }) => drawingTools.has(tool));
  if (last === undefined && end.failure !== undefined) return []; // the failure of the model says it all
  const detail = `The requested chart could not be rendered: ${describeObstacle(last, end)}`;
  return [{ code: "chart_not_rendered", severity: "major", detail }];
}

function describeObstacle(last: CallRecord | undefined, { detail }: StepsEnd): string {
  const ended = detail === null ? "" : ` ${detail}`;
  if (last === undefined) return detail ?? "the model finished without drawing one.";
  if (last.status === "ok") return `the last ${last.tool} call published no figure.${ended}`;
  if (last.status === "aborted") return detail ?? "the turn ended while it was being drawn.";
  const reason = last.failure?.reason ?? "no reason given";
  return detail?.includes(reason) ? detail : `${last.tool} failed: ${asSentence(reason)}${ended}`;
}

/** What was drawn with flaws and not repaired. */
function findFlawedDrawings({ cells, charts }: Ledger): Gap[] {
  const current = [...cells, ...charts].filter(({ replacedIn }) => replacedIn === null);
  return current.flatMap(({ findings, artifacts }) => {
    const title = artifacts[0]?.title;
    return findings.map(({ code, detail }): Gap => ({
      code,
      severity: "minor",
      detail: `${title === undefined ? "" : `${title}: `}${detail}`,
    }));
  });
}

const MAX_RESULT_BYTES = 256 * 1024;
const MAX_DEPTH = 4;

/**
 * Reports entities that entered, left or paused: those that the cells of the turn noted, and those in results under the key `coverage_events`. The
 * answer is complete, but a total means something different before and after such an event.
 */
export function findCoverageEvents(sources: CoverageSources): Gap[] {
  const { events, omitted } = listCoverageEvents(sources);
  const found = [...new Set(events.map(describeCoverageEvent))];
  if (found.length === 0) return [];
  const count = found.length - LISTED + omitted;
  const more = count > 0 ? `; and ${count} more` : "";
  return [{ code: "coverage_events", severity: "info", detail: `Coverage changed: ${found.slice(0, LISTED).join("; ")}${more}.` }];
}

interface CoverageSources {
  readonly ledger: Pick<Ledger, "cells">;
  readonly conversation: Conversation;
}

/** The events of all current cells, in the order of the cells. `omitted`: how many more the cells counted. */
export function listCoverageEvents({ ledger, conversation }: CoverageSources): { events: CoverageEvent[]; omitted: number } {
  const cells = ledger.cells.filter(({ replacedIn }) => replacedIn === null);
  const ofResults = readSmallResults({ ledger, conversation }).flatMap((result) => findEvents(result, MAX_DEPTH));
  const events = [...cells.flatMap(({ coverage }) => coverage?.events ?? []), ...ofResults];
  return { events, omitted: cells.reduce((sum, { coverage }) => sum + (coverage?.omitted ?? 0), 0) };
}

/** The results of all current cells, without those that are too large to be read again. */
export function readSmallResults({ ledger, conversation }: CoverageSources): unknown[] {
  return ledger.cells.flatMap(({ resultAlias, replacedIn }) => {
    const item = resultAlias === null || replacedIn !== null ? null : conversation.evidence.get(resultAlias);
    if (item === null || item.bytes > MAX_RESULT_BYTES) return [];
    return [JSON.parse(readItemText(item) ?? "null") as unknown];
  });
}

function findEvents(value: unknown, depth: number): CoverageEvent[] {
  if (depth === 0 || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "coverage_events" && Array.isArray(inner)
      ? inner.flatMap((event) => coverageEventSchema.safeParse(event).data ?? [])
      : findEvents(inner, depth - 1),
  );
}
