import { z } from "zod";
import { coverageSeriesSchema, type CoverageSeries } from "./coverage-series.ts";

/** An entity entered, left or paused, so that a total means something different before and after. `derive_change_series` finds these events. */
export const coverageEventSchema = z.object({
  /** ISO time: the period in which the entity was counted again, or not any more. */
  period: z.string(),
  entity: z.string(),
  /** `first_listed`, `gap_start`, `gap_end` or `delisted`. */
  kind: z.string(),
  /** The first value of an entity that enters, or the last value of one that leaves. */
  value: z.number().nullish(),
  /** The name of the derived series. */
  series: z.string().optional(),
});

export type CoverageEvent = z.infer<typeof coverageEventSchema>;

/** The event as a part of a sentence. */
export function describeCoverageEvent({ entity, kind, period, value }: CoverageEvent): string {
  const day = period.replace(/T00:00:00(?:\.0+)?(?:Z|[+-]\d{2}:\d{2})?$/, "");
  const size = typeof value === "number" ? ` with ${value.toLocaleString("en-US", { maximumFractionDigits: 2 })}` : "";
  return `${entity} ${verbs.get(kind) ?? kind.replaceAll("_", " ")} on ${day}${size}`;
}

const verbs: ReadonlyMap<string, string> = new Map([
  ["first_listed", "was first listed"],
  ["delisted", "was delisted"],
  ["gap_start", "stopped reporting"],
  ["gap_end", "reported again"],
]);

/** The coverage events that a cell noted, how many more there were, and the series that they belong to. */
export interface Coverage {
  readonly events: readonly CoverageEvent[];
  readonly omitted: number;
  readonly series: readonly CoverageSeries[];
}

/** Diagnostics come from a sandbox: what is not in the expected form counts as none. */
export function readCoverage(diagnostics: Readonly<Record<string, unknown>>): Coverage {
  const omitted = z.object({ coverageEvents: z.number() }).safeParse(diagnostics["omittedDiagnostics"]).data;
  return {
    events: z.array(coverageEventSchema).safeParse(diagnostics["coverageEvents"]).data ?? [],
    omitted: omitted?.coverageEvents ?? 0,
    series: z.array(coverageSeriesSchema).safeParse(diagnostics["coverageSeries"]).data ?? [],
  };
}
