import { z } from "zod";

/** The result of a cell as a JavaScript value. Integers beyond 2^53 are exact only in the original JSON text. */
export type CellValue = string | number | boolean | null | CellValue[] | { [key: string]: CellValue };

export const cellValueSchema: z.ZodType<CellValue> = z.json();

const count = z.int().nonnegative();

/** A line on a time axis with less than 60 % of the points that its cadence implies for the time span shown. */
const lowCoverage = z.looseObject({
  axes: count,
  label: z.string(),
  observed: count,
  expected: count,
  coverage: z.number().min(0).max(1),
  largestGap: z.string(),
  cadence: z.string().optional(),
  gapStart: z.string().optional(),
  gapEnd: z.string().optional(),
});

/** Observations about a cell besides its result. Empty entries are omitted; unknown keys are kept. */
export const cellDiagnosticsSchema = z.looseObject({
  nonFinite: z.array(z.strictObject({ path: z.string(), count })).optional(),
  implicitResult: z.boolean().optional(),
  implicitResultError: z.string().optional(),
  frames: z
    .record(z.string(), z.strictObject({ columns: z.array(z.strictObject({ name: z.string(), dtype: z.string() })), rows: count }))
    .optional(),
  unsavedFigures: count.optional(),
  showCalls: count.optional(),
  savefigCalls: count.optional(),
  missingGlyphs: z.array(z.strictObject({ text: z.string(), glyphs: z.array(z.string()) })).optional(),
  overlappingLabels: z
    .array(z.strictObject({ axes: count, axis: z.enum(["x", "y"]), pairs: count, example: z.array(z.string()) }))
    .optional(),
  largeLegend: z.array(z.strictObject({ axes: count.nullable(), entries: count })).optional(),
  lowCoverage: z.array(lowCoverage).optional(),
  dataQuality: z.array(z.record(z.string(), z.unknown())).optional(),
});
