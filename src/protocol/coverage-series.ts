import { z } from "zod";

const MAX_PERIODS = 10_000;
const count = z.int().nonnegative();
const numbers = z.array(z.number()).max(MAX_PERIODS);

/** The changes of a total whose coverage changed, as `derive_change_series` notes them in `diagnostics.coverageSeries`. */
export const coverageSeriesSchema = z
  .object({
    series: z.string().max(1000),
    kind: z.enum(["level", "flow"]),
    /** How many periods have a change. */
    periods: count,
    /** The sum of all changes, and of the changes without coverage. */
    total: z.number(),
    stable: z.number(),
    /** The total of the first period, with the sign of the changes. */
    first: z.number(),
    /** Only if some periods are not noted: the places of the noted ones. */
    places: z.array(count).max(MAX_PERIODS).optional(),
    /** The noted periods, in milliseconds since 1970 on the wall clock of the series, and their changes. */
    at: numbers,
    change: numbers,
    /** The noted periods in which entities entered or left, as an index into `at`, and what that added. */
    coverage: z.array(z.tuple([count, z.number()])).max(MAX_PERIODS),
  })
  .refine(({ at, change, coverage }) => at.length === change.length && coverage.every(([place]) => place < at.length));

export type CoverageSeries = z.infer<typeof coverageSeriesSchema>;
