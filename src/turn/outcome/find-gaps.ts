import type { Gap } from "../../protocol/turn-result.ts";
import { asSentence } from "../as-sentence.ts";
import type { CallRecord } from "../ledger.ts";
import type { Turn } from "../open-turn.ts";
import { findCoverageEvents } from "./find-coverage-events.ts";
import type { StepsEnd } from "../steps/run-steps.ts";

/** Everything that was asked for and not delivered, and what else has to be said of it; the gravest first. */
export function findGaps(turn: Turn, end: StepsEnd): Gap[] {
  const gaps = [...ofEnd(end), ...ofChart(turn, end), ...ofCoverage(turn), ...turn.serverGaps, ...turn.gaps, ...findCoverageEvents(turn)];
  const order = { major: 0, minor: 1, info: 2 } as const;
  return gaps.sort((a, b) => order[a.severity] - order[b.severity]);
}

export function ofEnd({ stopReason, detail }: StepsEnd): Gap[] {
  return detail === null ? [] : [{ code: stopReason, severity: "major", detail }];
}

const drawing: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit", "render_chart"]);

/** Whatever ended the turn: a chart that was asked for and is not there is a gap, with what stood in its way last. */
function ofChart({ plan, ledger }: Turn, end: StepsEnd): Gap[] {
  if (plan.chartIntent !== "explicit" || ledger.artifacts.length > 0) return [];
  const last = ledger.calls.findLast(({ tool }) => drawing.has(tool));
  const detail = `The chart that was asked for could not be rendered: ${causeOf(last, end)}`;
  return [{ code: "chart_not_rendered", severity: "major", detail }];
}

function causeOf(last: CallRecord | undefined, { detail }: StepsEnd): string {
  const ended = detail === null ? "" : ` ${detail}`;
  if (last === undefined) return detail ?? "nothing was drawn before the model was done.";
  if (last.status === "ok") return `the last ${last.tool} call published no figure.${ended}`;
  if (last.status === "aborted") return detail ?? "the turn was ended while it was drawn.";
  const reason = last.failure?.reason ?? "it did not say why";
  return detail?.includes(reason) ? detail : `${last.tool} failed: ${asSentence(reason)}${ended}`;
}

function ofCoverage({ ledger }: Turn): Gap[] {
  return ledger.cells.flatMap(({ sparse, artifacts, replacedIn }): Gap[] => {
    if (sparse === null || replacedIn !== null) return [];
    const title = artifacts[0]?.title;
    return [{ code: "low_coverage", severity: "minor", detail: `${title === undefined ? "" : `${title}: `}${sparse}` }];
  });
}
