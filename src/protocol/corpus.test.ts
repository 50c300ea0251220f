import { glob, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { saysSomething } from "./artifact.ts";
import { chartSpecSchema } from "./chart-spec.ts";
import { checkChart } from "./check-chart.ts";
import { figureSchema } from "./figure.ts";
import { readFigure } from "./read-figure.ts";

/** Uses the same JSON files as python/tests/test_corpus.py, so that these schemas accept what Python writes. */
const root = new URL("../../", import.meta.url);

interface Case {
  title: string;
  spec: unknown;
  data: unknown;
  issues: string[];
  json: unknown;
  diagnostics?: unknown;
  figure: unknown;
}

const count = z.int().nonnegative();

/** A series along time with less than 60 % of its expected points. */
const lowCoverage = z.looseObject({
  axes: count,
  label: z.string(),
  observed: count,
  expected: count,
  coverage: z.number().min(0).max(1),
  against: z.string(),
  largestGap: z.string(),
  gapStart: z.string(),
  gapEnd: z.string(),
});

/** Observations about a cell besides its result. Empty entries are omitted; unknown keys are kept. */
const cellDiagnosticsSchema = z.looseObject({
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
  coverageUnknown: z.array(z.strictObject({ axes: count, label: z.string(), observed: count })).optional(),
  dataQuality: z.array(z.record(z.string(), z.unknown())).optional(),
});

async function readCases(folder: string): Promise<Case[]> {
  const cases: Case[] = [];
  for await (const name of glob(`corpus/${folder}/*.json`, { cwd: root })) {
    cases.push(...(JSON.parse(await readFile(new URL(name, root), "utf8")) as Case[]));
  }
  expect(cases.length).toBeGreaterThan(5);
  return cases;
}

test("every chart of the corpus has the same issues as in Python", async () => {
  for (const { title, spec, data, issues } of await readCases("charts")) {
    const paths = [...new Set(checkChart(spec, data).map((issue) => issue.path))];
    expect(paths.sort(), title).toEqual([...issues].sort());
  }
});

test("every result of the corpus is a valid cell value with valid diagnostics", async () => {
  for (const { title, json, diagnostics } of await readCases("results")) {
    expect(z.json().safeParse(json).success, title).toBe(true);
    expect(cellDiagnosticsSchema.safeParse(diagnostics ?? {}).error, title).toBeUndefined();
  }
});

test("every figure of the corpus is valid figure data", async () => {
  for (const { title, figure } of await readCases("figures")) {
    expect(figureSchema.safeParse(figure).error, title).toBeUndefined();
  }
});

test("an alt text must be meaningful", async () => {
  const cases = JSON.parse(await readFile(new URL("corpus/alt-texts.json", root), "utf8")) as { alt: string; ok: boolean }[];
  for (const { alt, ok } of cases) expect(saysSomething(alt), alt).toBe(ok);
});

test("the schema file for Python is up to date (run scripts/write-chart-schema.ts)", async () => {
  expect(await readFile(new URL("python/sluice/chart_schema.json", root), "utf8")).toBe(
    `${JSON.stringify(z.toJSONSchema(chartSpecSchema), null, 2)}\n`,
  );
});

test("figures that older versions stored are opened", async () => {
  const cases = JSON.parse(await readFile(new URL("corpus/older-figures.json", root), "utf8")) as Record<
    "title" | "stored" | "figure",
    string
  >[];
  expect(cases.length).toBeGreaterThan(30);
  for (const { title, stored, figure } of cases) {
    expect(readFigure(stored), title).toEqual(figure);
    expect(readFigure(figure), title).toEqual(figure);
  }
});

test("a figure of a newer version is refused by name", () => {
  expect(() => readFigure({ schemaVersion: 3, axes: [] })).toThrow(
    "This figure has schema version 3; this version of Sluice reads versions up to 2. Update Sluice to open it.",
  );
  expect(() => readFigure({ axes: [{ series: "?" }] })).toThrow("These are not the data of a figure");
});

test("figure data with columns of different lengths is invalid", () => {
  const isValid = (series: object): boolean =>
    figureSchema.safeParse({ schemaVersion: 2, axes: [{ x: { scale: "linear" }, y: { scale: "linear" }, series: [series], unread: [] }] })
      .success;
  expect(isValid({ type: "line", x: [1, 2], y: [1, 2] })).toBe(true);
  expect(isValid({ type: "line", x: [1, 2], y: [1] })).toBe(false);
  expect(isValid({ type: "line", x: [1, 2], y: [1, 2], xNanoseconds: [1] })).toBe(false);
  expect(isValid({ type: "histogram", x: [1], y: [1], edges: [1] })).toBe(false);
  expect(isValid({ type: "bar", x: [1], y: [1], xCategories: [0] })).toBe(false);
  expect(isValid({ type: "line", x: ["a"], y: [1] })).toBe(false);
});
