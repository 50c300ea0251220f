import { z } from "zod";
import { figureSchema, type Figure, type FigureAxes, type FigureAxis, type FigureSeries } from "./figure.ts";

/**
 * Opens figure data as they were stored. Data of version 1, which had texts as places on axes of times and categories, are migrated.
 * Throws if a newer version of Sluice wrote them, or if they are not figure data.
 */
export function readFigure(stored: unknown): Figure {
  const { schemaVersion: version = 1 } = (stored ?? {}) as { schemaVersion?: unknown };
  if (typeof version === "number" && version > 2)
    throw new Error(`This figure has schema version ${version}; this version of Sluice reads versions up to 2. Update Sluice to open it.`);
  const document = version === 1 ? figureVersion1Schema.transform(migrate) : figureSchema;
  const { data, error } = document.safeParse(stored);
  if (error !== undefined) throw new Error(`These are not the data of a figure: ${z.prettifyError(error)}`);
  return data;
}

const value = z.union([z.string(), z.number(), z.null()]);
const amount = z.union([z.number(), z.null()]);
const values = z.array(z.union([value, z.array(amount).length(5)]));
const errors = z.array(z.union([amount, z.array(amount).length(2)])).optional();
const scale = z.enum(["linear", "log", "time", "category"]);

const axesVersion1 = z.strictObject({
  title: z.string().optional(),
  xLabel: z.string().optional(),
  yLabel: z.string().optional(),
  xScale: scale,
  yScale: scale,
  series: z.array(
    z.strictObject({
      type: z.enum(["line", "step", "scatter", "bar", "barh", "histogram", "errorbar", "area", "pie", "box", "violin", "heatmap"]),
      label: z.string().optional(),
      x: values,
      y: values,
      xerr: errors,
      yerr: errors,
      z: z.array(z.array(amount)).optional(),
      edges: z.array(z.union([value, z.array(value)])).optional(),
      baseline: z.array(value).optional(),
    }),
  ),
  unread: z.array(z.strictObject({ artist: z.string(), reason: z.string() })),
});

/** Figure data before `schemaVersion` was written. Places on axes of times and categories were texts. */
const figureVersion1Schema = z.strictObject({ axes: z.array(axesVersion1) });

type Axes1 = z.infer<typeof axesVersion1>;
type Series1 = Axes1["series"][number];
type Value1 = z.infer<typeof value>;

function migrate({ axes }: z.infer<typeof figureVersion1Schema>): Figure {
  return { schemaVersion: 2, axes: axes.map(migrateAxes) };
}

function migrateAxes({ title, xLabel, yLabel, xScale, yScale, series, unread }: Axes1): FigureAxes {
  const plain = series.filter(({ type }) => type !== "pie");
  const x = createPlaces(
    xScale,
    xLabel,
    plain.flatMap((one) => [...one.x, ...(isHorizontal(one) ? (one.baseline ?? []) : [])]),
  );
  const y = createPlaces(
    yScale,
    yLabel,
    plain.flatMap((one) => [...one.y, ...(isHorizontal(one) ? [] : (one.baseline ?? []))]),
  );
  const migrated = series.map((one) => (one.type === "pie" ? migratePie(one) : migrateSeries(one, x, y)));
  return { ...(title === undefined ? {} : { title }), x: x.axis, y: y.axis, series: migrated, unread };
}

/** How the places of one axis become numbers. */
interface Places {
  readonly axis: FigureAxis;
  toNumber(place: Value1): number | null;
  toNanoseconds(place: Value1): number | null;
}

function createPlaces(scale: Axes1["xScale"], label: string | undefined, places: readonly unknown[]): Places {
  const texts = [...new Set(places.filter((place) => typeof place === "string"))];
  const shared = label === undefined ? {} : { label };
  if (scale === "time") {
    const zone = readZone(texts);
    const axis = { scale, ...shared, ...(zone === null ? {} : { zone }) };
    return {
      axis,
      toNumber: (place) => (typeof place === "number" ? place : (readTime(place)?.milliseconds ?? null)),
      toNanoseconds: (place) => readTime(place)?.nanoseconds ?? null,
    };
  }
  const indices = new Map(texts.map((text, index) => [text, index]));
  const tickLabels = texts.map((text, at) => ({ at, text }));
  const axis = texts.length === 0 ? { scale, ...shared } : { scale: "category" as const, ...shared, tickLabels };
  return { axis, toNumber: (place) => (typeof place === "string" ? (indices.get(place) ?? null) : place), toNanoseconds: () => null };
}

/** Before version 2, bars of a horizontal histogram were told only by their edges, which are along y. */
function isHorizontal({ type, x, y, edges = [] }: Series1): boolean {
  if (type === "box" || type === "violin") return x.some(Array.isArray);
  if (type !== "histogram") return type === "barh";
  const start = edges[0] ?? null;
  return typeof start === "string" ? typeof y[0] === "string" : isMiddle(y[0], edges) && !isMiddle(x[0], edges);
}

function isMiddle(place: unknown, [start, end]: NonNullable<Series1["edges"]>): boolean {
  return typeof place === "number" && Math.abs(place - (Number(start) + Number(end)) / 2) <= 1e-9 * Math.abs(Number(end) - Number(start));
}

function migrateSeries(one: Series1, x: Places, y: Places): FigureSeries {
  const horizontal = isHorizontal(one);
  const { baseline, edges } = one;
  const [across, along] = horizontal ? [y, x] : [x, y];
  const toNumbers = (places: Series1["x"], { toNumber }: Places): FigureSeries["x"] =>
    places.map((place) => (Array.isArray(place) ? place : toNumber(place)));
  return {
    ...one,
    x: toNumbers(one.x, x),
    y: toNumbers(one.y, y),
    ...readNanoseconds("xNanoseconds", one.x, x),
    ...readNanoseconds("yNanoseconds", one.y, y),
    ...(baseline && { baseline: baseline.map((place) => along.toNumber(place)) }),
    edges: edges?.map((edge, index) =>
      Array.isArray(edge) ? edge.map((place) => (index === 0 ? x : y).toNumber(place)) : across.toNumber(edge),
    ),
    ...(horizontal && one.type !== "barh" ? { orientation: "horizontal" } : {}),
  };
}

function readNanoseconds(name: "xNanoseconds" | "yNanoseconds", places: Series1["x"], { toNanoseconds }: Places): Partial<FigureSeries> {
  const listed = places.map((place) => (Array.isArray(place) ? null : toNanoseconds(place)));
  return listed.some((nanoseconds) => (nanoseconds ?? 0) % 1000 > 0) ? { [name]: listed } : {};
}

function migratePie({ y, x, label }: Series1): FigureSeries {
  const labels = x.map((name) => (typeof name === "string" ? name : null));
  return { type: "pie", ...(label === undefined ? {} : { label }), x: x.map((_name, index) => index), y, labels };
}

const TIME = /^(.{10})T(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?$/;

/** The whole or fractional milliseconds of a time that Python wrote, and its nanoseconds after the whole millisecond. */
function readTime(place: Value1): { milliseconds: number; nanoseconds: number } | null {
  const [, day, clock, digits = "", offset = "Z"] = (typeof place === "string" ? TIME.exec(place) : null) ?? [];
  if (day === undefined) return null;
  const fraction = digits.padEnd(9, "0");
  const whole = Date.parse(`${day}T${clock}.${fraction.slice(0, 3)}${offset}`);
  const nanoseconds = Number(fraction.slice(3));
  // Times that are finer than a microsecond have their rest in a list of its own.
  return { milliseconds: nanoseconds % 1000 === 0 ? whole + nanoseconds / 1e6 : whole, nanoseconds };
}

/** The offset that all times have; UTC if they differ, as in a zone whose clocks change; null for times without a zone. */
function readZone(times: readonly unknown[]): string | null {
  const offsets = new Set(times.map((time) => TIME.exec(String(time))?.[4]).filter((offset) => offset !== undefined));
  const [first = null] = offsets;
  return offsets.size > 1 || first === "Z" || first === "+00:00" ? "UTC" : first;
}
