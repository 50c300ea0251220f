import { z } from "zod";
import { ellipsize } from "../text/clip-text.ts";
import { coverageSeriesSchema } from "./coverage-series.ts";

/** The diagnostics that a sandbox may send with a cell. The host adds its own under other names, which a sandbox therefore cannot forge. */

const MAX_ENTRIES = 10_000;
const MAX_CHARACTERS = 10_000;
const MAX_DEPTH = 5;

const text = z.string().transform((long) => ellipsize(long, MAX_CHARACTERS));
const count = z.int().nonnegative();
const list = <Item extends z.ZodType>(item: Item) => z.array(item).max(MAX_ENTRIES);
const byName = <Value extends z.ZodType>(value: Value) => z.record(z.string().max(MAX_CHARACTERS), value);

/** Any JSON of limited depth. */
function facts(depth: number): z.ZodType {
  const scalar = z.union([text, z.number(), z.boolean(), z.null()]);
  return depth === 0 ? scalar : z.union([scalar, list(facts(depth - 1)), byName(facts(depth - 1))]);
}

/** An object with these fields, and any others. */
const object = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape).catchall(facts(MAX_DEPTH));

const shapes = {
  implicitResult: z.literal(true),
  implicitResultError: text,
  nonFinite: list(object({ path: text, count })),
  frames: byName(object({ columns: list(object({ name: text, dtype: text })), rows: count })),
  readings: list(object({ alias: text, notes: list(object({ message: text })) })),
  unsavedFigures: count,
  showCalls: count,
  savefigCalls: count,
  figureDataOmitted: list(object({ figure: text })),
  missingGlyphs: list(object({})),
  overlappingLabels: list(object({})),
  largeLegend: list(object({})),
  lowCoverage: list(object({ label: text, observed: z.number(), expected: z.number(), against: text, largestGap: text })),
  coverageUnknown: list(object({ label: text })),
  coverageEvents: list(object({ series: text, period: text, entity: text, kind: text, value: z.number() })),
  coverageSeries: list(coverageSeriesSchema),
  coverageSeriesOmitted: list(object({ series: text, periods: count, noted: count })),
  dataQuality: list(object({})),
  omittedDiagnostics: byName(count),
} as const satisfies Record<string, z.ZodType>;

const MAX_NAMED = 20;
const MAX_NAME_CHARACTERS = 100;

/** Returns the diagnostics in their expected form. The others are left out; `malformedDiagnostics` names them. */
export function readDiagnostics(sent: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  const malformed: string[] = [];
  for (const [name, value] of Object.entries(sent)) {
    const shape = Object.hasOwn(shapes, name) ? shapes[name as keyof typeof shapes] : undefined;
    const parsed = Array.isArray(value) && value.length > MAX_ENTRIES ? undefined : shape?.safeParse(value);
    if (parsed?.success === true) read[name] = parsed.data;
    else malformed.push(ellipsize(name, MAX_NAME_CHARACTERS));
  }
  const more = malformed.length - MAX_NAMED;
  const named = more > 0 ? [...malformed.slice(0, MAX_NAMED), `… ${more} more`] : malformed;
  return { ...read, ...(named.length > 0 && { malformedDiagnostics: named }) };
}
