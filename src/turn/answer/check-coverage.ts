import type { Gap } from "../../protocol/turn-result.ts";
import { listCoverageEvents, type CoverageSources } from "./build-best-effort-terminal-outcome.ts";
import { toWords } from "./to-words.ts";

/**
 * Raises the gap `coverage_events` to minor if the answer does not name the entities itself: the runtime adds their events, but the text around them
 * was written as if nothing had happened.
 */
export function checkCoverage(turn: CoverageSources, { answer, gaps }: { answer: string; gaps: readonly Gap[] }): Gap[] {
  const words = toWords(answer);
  const entities = new Set(listCoverageEvents(turn).events.map(({ entity }) => entity));
  const isNamed = [...entities].every((entity) => words.includes(toWords(entity)));
  return gaps.map((gap) =>
    gap.code !== "coverage_events" || isNamed || words.includes(toWords(gap.detail)) ? gap : { ...gap, severity: "minor" },
  );
}
