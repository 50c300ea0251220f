import { expect, test } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { FigureAxes } from "../protocol/figure.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { toRepair, toToolResult } from "./tool-result.ts";

const kept = "Variables and files of this cell are available in the next cell of this turn.";

function answerTo(given: Partial<CellOutcome>, artifacts: ArtifactEnvelope[] = []): string {
  const outcome = createOutcome(given);
  return toToolResult({ tool: "code_interpreter", outcome, artifacts }, { evidence: createEvidenceStore() }).text;
}

function image({ axes, series, label }: { axes: number; series: number; label: string }): ArtifactEnvelope {
  const contentHash = "a".repeat(64);
  const one: FigureAxes = {
    title: label,
    xScale: "linear",
    yScale: "linear",
    series: Array.from({ length: series }, () => ({ type: "line", label, x: [1, 2], y: [3, null] })),
    unread: [],
  };
  const figure = { axes: Array.from({ length: axes }, () => one) };
  const url = `sluice://artifacts/${contentHash}`;
  return { schemaVersion: 1, kind: "image", url, alt: label, title: label, contentHash, bytes: 9, width: 8, height: 7, figure };
}

test("figures are summarized with their numbers, and long labels are clipped", () => {
  const { artifacts } = JSON.parse(answerTo({}, [image({ axes: 7, series: 1, label: "L".repeat(300) })])) as { artifacts: unknown[] };
  const words = `${"L".repeat(200)}… [+100 characters]`;
  const series = [{ type: "line", label: words, points: 2, gaps: 1, from: 1, to: 2, min: 3, max: 3, last: 3 }];
  const contentHash = "a".repeat(64);
  const shared = { kind: "image", url: `sluice://artifacts/${contentHash}`, contentHash, title: words, alt: words, width: 8, height: 7 };
  expect(artifacts).toEqual([{ ...shared, figure: [...Array.from({ length: 6 }, () => ({ title: words, series })), { moreAxes: 1 }] }]);
});

test("the most and largest figures of a cell fit the budget, each with its URL and a count of what is left out", () => {
  const text = answerTo(
    {},
    Array.from({ length: 20 }, () => image({ axes: 6, series: 12, label: "\u{1F600}".repeat(5000) })),
  );
  expect(Buffer.byteLength(text)).toBeLessThan(12_000);
  expect(text).not.toMatch(/\\ud[89a-f]/);
  const { artifacts } = JSON.parse(text) as { artifacts: { contentHash: string; figure: unknown }[] };
  expect(artifacts.map(({ contentHash, figure }) => [contentHash, figure])).toEqual(
    Array.from({ length: 20 }, () => ["a".repeat(64), [{ moreAxes: 6 }]]),
  );
});

test("a chart with many series lists some of them and counts the others", () => {
  const series = Array.from({ length: 50 }, (_, index) => ({ key: `${index} ${"k".repeat(190)}` }));
  const contentHash = "b".repeat(64);
  const shared = { kind: "chart", url: `sluice://artifacts/${contentHash}`, contentHash } as const;
  const chart: ArtifactEnvelope = { ...shared, schemaVersion: 1, spec: { type: "line", xKey: "x", series }, data: [{ x: 1 }] };
  const { artifacts } = JSON.parse(answerTo({}, [chart])) as { artifacts: unknown[] };
  expect(artifacts).toEqual([{ ...shared, type: "line", rows: 1, series: series.slice(0, 12).map(({ key }) => key), moreSeries: 38 }]);
});

test("clipping output never splits a character", () => {
  const faces = "\u{1F600}".repeat(4000);
  const { stdout, survives } = JSON.parse(answerTo({ stdout: `x${faces}y` })) as { stdout: string; survives: string };
  const shown = `\u{1F600}`.repeat(1023);
  expect([stdout, survives]).toEqual([`x${shown}\n… [3908 characters of stdout are not shown here] …\n${shown}y`, kept]);
  expect(stdout.isWellFormed()).toBe(true);
});

test("notes are limited in number and length, whatever the sandbox sends", () => {
  const diagnostics = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`odd${index}`, "w".repeat(5000)]));
  const { notes } = JSON.parse(answerTo({ diagnostics: { lowCoverage: [{ label: "L".repeat(9000) }], ...diagnostics } })) as {
    notes: string[];
  };
  expect(notes.length).toBe(21);
  expect(notes[0]).toMatch(/^Plotted lines are sparse: L+… \[\+\d+ characters\]$/);
  expect(notes[1]).toBe(`odd0: "${"w".repeat(599)}… [+4402 characters]`);
  expect(notes.at(-1)).toBe("… 6 more notes");
  expect(Math.max(...notes.map((note) => note.length))).toBeLessThan(1100);
});

test("the reason for a repair is short and splits no character", () => {
  const error = { type: "ValueError", message: "\u{1F600}".repeat(5000) };
  const repair = toRepair({ status: "python_error", diagnostics: {}, error } as unknown as CellOutcome);
  expect(repair).toEqual({ tool: "python_code_edit", because: `ValueError: ${"\u{1F600}".repeat(244)}… [+9512 characters]` });
});
