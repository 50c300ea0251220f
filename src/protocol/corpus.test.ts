import { readFile } from "node:fs/promises";
import { glob } from "node:fs/promises";
import { expect, test } from "vitest";
import { saysSomething } from "./artifact.ts";
import { cellDiagnosticsSchema, cellValueSchema } from "./cell-value.ts";
import { chartSchemaJson } from "./chart-json-schema.ts";
import { checkChart } from "./check-chart.ts";
import { figureSchema } from "./figure.ts";

/** The same JSON files as python/tests/test_corpus.py: what Python writes is what these schemas accept. */
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

async function readCases(folder: string): Promise<Case[]> {
  const cases: Case[] = [];
  for await (const name of glob(`corpus/${folder}/*.json`, { cwd: root })) {
    cases.push(...(JSON.parse(await readFile(new URL(name, root), "utf8")) as Case[]));
  }
  expect(cases.length).toBeGreaterThan(5);
  return cases;
}

test("every chart of the corpus is judged as Python judges it", async () => {
  for (const { title, spec, data, issues } of await readCases("charts")) {
    const paths = [...new Set(checkChart(spec, data).map((issue) => issue.path))];
    expect(paths.sort(), title).toEqual([...issues].sort());
  }
});

test("every result of the corpus is a cell value with its diagnostics", async () => {
  for (const { title, json, diagnostics } of await readCases("results")) {
    expect(cellValueSchema.safeParse(json).success, title).toBe(true);
    expect(cellDiagnosticsSchema.safeParse(diagnostics ?? {}).error, title).toBeUndefined();
  }
});

test("every figure of the corpus is figure data", async () => {
  for (const { title, figure } of await readCases("figures")) {
    expect(figureSchema.safeParse(figure).error, title).toBeUndefined();
  }
});

test("an alt text has to say something", async () => {
  const cases = JSON.parse(await readFile(new URL("corpus/alt-texts.json", root), "utf8")) as { alt: string; ok: boolean }[];
  for (const { alt, ok } of cases) expect(saysSomething(alt), alt).toBe(ok);
});

test("the schema that Python reads is the one of chart-spec.ts (scripts/write-chart-schema.ts writes it)", async () => {
  expect(await readFile(new URL("python/sluice/chart_schema.json", root), "utf8")).toBe(chartSchemaJson());
});

test("figure data with columns of different length is refused", () => {
  const axes = { xScale: "linear", yScale: "linear", unread: [] };
  expect(figureSchema.safeParse({ axes: [{ ...axes, series: [{ type: "line", x: [1, 2], y: [1] }] }] }).success).toBe(false);
  expect(figureSchema.safeParse({ axes: [{ ...axes, series: [{ type: "histogram", x: [1], y: [1], edges: [1] }] }] }).success).toBe(false);
});
