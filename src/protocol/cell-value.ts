import { z } from "zod";

/** The result of a cell once it is a JavaScript value. Integers past 2^53 are only exact in the JSON text that it came as. */
export type CellValue = string | number | boolean | null | CellValue[] | { [key: string]: CellValue };

export const cellValueSchema: z.ZodType<CellValue> = z.json();

/** What a cell says about itself besides its result. Keys without an entry are left out; unknown keys are kept. */
export interface CellDiagnostics {
  nonFinite?: { path: string; count: number }[] | undefined;
  implicitResult?: boolean | undefined;
  implicitResultError?: string | undefined;
  frames?: Record<string, { columns: { name: string; dtype: string }[]; rows: number }> | undefined;
  unsavedFigures?: number | undefined;
  showCalls?: number | undefined;
  savefigCalls?: number | undefined;
  missingGlyphs?: { text: string; glyphs: string[] }[] | undefined;
  overlappingLabels?: { axes: number; axis: "x" | "y"; pairs: number; example: string[] }[] | undefined;
  largeLegend?: { axes: number | null; entries: number }[] | undefined;
  lowCoverage?: LowCoverage[] | undefined;
  dataQuality?: Record<string, unknown>[] | undefined;
  [other: string]: unknown;
}

/** A line on a time axis with less than 60 % of the points that its own rhythm promises over the span shown. */
export interface LowCoverage {
  axes: number;
  label: string;
  observed: number;
  expected: number;
  coverage: number;
  largestGap: string;
  cadence?: string | undefined;
  gapStart?: string | undefined;
  gapEnd?: string | undefined;
}

const count = z.int().nonnegative();

export const cellDiagnosticsSchema: z.ZodType<CellDiagnostics> = z.looseObject({
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
  lowCoverage: z
    .array(
      z.looseObject({
        axes: count,
        label: z.string(),
        observed: count,
        expected: count,
        coverage: z.number().min(0).max(1),
        largestGap: z.string(),
        cadence: z.string().optional(),
        gapStart: z.string().optional(),
        gapEnd: z.string().optional(),
      }),
    )
    .optional(),
  dataQuality: z.array(z.record(z.string(), z.unknown())).optional(),
});
