import { describe, expect, test } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { parseToolError } from "../errors/tool-error.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { FigureAxes } from "../protocol/figure.ts";
import type { CellOutcome, CellStatus } from "../protocol/outcome.ts";
import { toCellError, toRepair, toToolResult } from "./tool-result.ts";

const kept = "Variables and files of this cell are available in the next cell of this turn.";

function answerTo(given: Partial<CellOutcome>, artifacts: ArtifactEnvelope[] = []): string {
  const outcome = createOutcome(given);
  return toToolResult({ tool: "code_interpreter", outcome, artifacts }, { evidence: createEvidenceStore() }).text;
}

function image({ axes, series, label }: { axes: number; series: number; label: string }): ArtifactEnvelope {
  const contentHash = "a".repeat(64);
  const one: FigureAxes = {
    title: label,
    x: { scale: "linear" },
    y: { scale: "linear" },
    series: Array.from({ length: series }, () => ({ type: "line", label, x: [1, 2], y: [3, null] })),
    unread: [],
  };
  const figure = { schemaVersion: 2 as const, axes: Array.from({ length: axes }, () => one) };
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
  const chart: ArtifactEnvelope = { ...shared, schemaVersion: 1, bytes: 9, spec: { type: "line", xKey: "x", series }, data: [{ x: 1 }] };
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
  expect(notes[0]).toMatch(/^Plotted series are sparse: L+… \[\+\d+ characters\]$/);
  expect(notes[1]).toBe(`odd0: "${"w".repeat(599)}… [+4402 characters]`);
  expect(notes.at(-1)).toBe("… 6 more notes");
  expect(Math.max(...notes.map((note) => note.length))).toBeLessThan(1100);
});

test("the reason for a repair is short and splits no character", () => {
  const error = { type: "ValueError", message: "\u{1F600}".repeat(5000) };
  const repair = toRepair({ status: "python_error", diagnostics: {}, error } as unknown as CellOutcome);
  expect(repair).toEqual({ tool: "python_code_edit", because: `ValueError: ${"\u{1F600}".repeat(244)}… [+9512 characters]` });
});

const editHint = "Fix it with python_code_edit: variables are as they were before this cell.";

describe("the tool error of a cell", () => {
  test("is null for a successful cell", () => {
    expect(toCellError(outcome("ok"), "code_interpreter")).toBeNull();
    expect(toRepair(outcome("ok"))).toBeNull();
  });

  test("has the exception, its position, and a hint that the state did not change", () => {
    const failed = outcome("python_error", {
      error: { type: "KeyError", message: "'close'", line: 3, column: 5, traceback: "Traceback …" },
    });
    expect(toCellError(failed, "code_interpreter")).toEqual({
      error_kind: "sandbox_runtime",
      tool: "code_interpreter",
      summary: "KeyError: 'close' (line 3)",
      details: [{ path: "code", issue: "KeyError: 'close'", received_type: "string", line: 3, column: 5, traceback: "Traceback …" }],
      hints: ["Fix it with python_code_edit: variables are as they were before this cell."],
      examples: [],
      error_code: "PYTHON_ERROR",
      retryable: false,
      _envelope_version: 1,
    });
    expect(toRepair(failed)).toEqual({ tool: "python_code_edit", because: "KeyError: 'close'" });
  });

  test.each([
    ["python_error", "PYTHON_ERROR", [editHint]],
    ["timeout", "PYTHON_TIMEOUT", ["Vectorize loops or work on an aggregate. The time limit applies to the cell's own code.", editHint]],
    ["out_of_memory", "PYTHON_OUT_OF_MEMORY", ["Make fewer copies, select columns early, or aggregate before joining.", editHint]],
    [
      "output_limit",
      "PYTHON_OUTPUT_LIMIT",
      ["Return an aggregate or fewer artifacts. The full data stays available under its alias.", editHint],
    ],
    ["crashed", "PYTHON_CRASHED", ["Do not use os._exit, ctypes or signals, and use less memory at a time.", editHint]],
    [
      "contract_violation",
      "CONTRACT_VIOLATION",
      [
        "Emit exactly the artifacts that expectedArtifacts declares, or change the declaration. Nothing of this cell was published.",
        editHint,
      ],
    ],
    ["sandbox_lost", "SANDBOX_LOST", ["Call again. Sluice opens a new sandbox, and the result says what happened to the variables."]],
  ] as const)("for %s has the code %s", (status, code, hints) => {
    const shared = { error_kind: "sandbox_runtime", tool: "code_interpreter", hints: [...hints], examples: [], error_code: code };
    const rest = { retryable: status === "sandbox_lost", _envelope_version: 1 };
    expect(parseToolError(toCellError(outcome(status), "code_interpreter"))).toEqual({
      ...shared,
      summary: `The cell ended as ${status}.`,
      details: [],
      ...rest,
    });
    const error = { type: "Odd", message: "", line: -1.5, limit: { name: "memoryBytes", allowed: 1, seen: 2 } };
    expect(parseToolError(toCellError(outcome(status, { error }), "code_interpreter"))).toEqual({
      ...shared,
      summary: "Odd",
      details: [{ path: "code", issue: "Odd [memoryBytes: 2 seen, 1 allowed]", received_type: "string" }],
      ...rest,
    });
    expect(toRepair(outcome(status))).toEqual(
      status === "sandbox_lost" ? null : { tool: "python_code_edit", because: `The cell ended as ${status}.` },
    );
  });

  test("has the measured limit", () => {
    const error = { type: "OutOfMemory", message: "The limit is 512 MB.", limit: { name: "memoryBytes", allowed: 512, seen: 600 } };
    expect(toCellError(outcome("out_of_memory", { error }), "code_interpreter")).toEqual({
      error_kind: "sandbox_runtime",
      tool: "code_interpreter",
      summary: "The limit is 512 MB.",
      details: [{ path: "code", issue: "OutOfMemory: The limit is 512 MB. [memoryBytes: 600 seen, 512 allowed]", received_type: "string" }],
      hints: ["Make fewer copies, select columns early, or aggregate before joining.", editHint],
      examples: [],
      error_code: "PYTHON_OUT_OF_MEMORY",
      retryable: false,
      _envelope_version: 1,
    });
  });

  test("does not repeat the name of the exception", () => {
    const error = { type: "MemoryError", message: "MemoryError: the limit is 512 MB." };
    expect(toCellError(outcome("out_of_memory", { error }), "code_interpreter")?.details).toEqual([
      { path: "code", issue: "MemoryError: the limit is 512 MB.", received_type: "string" },
    ]);
  });

  test("is null for low coverage, which still asks for a repair", () => {
    const sparse = outcome("ok", {
      diagnostics: { lowCoverage: [{ axes: 0, label: "flow", observed: 12, expected: 90, coverage: 0.13, largestGap: "30 days" }] },
    });
    expect(toCellError(sparse, "code_interpreter")).toBeNull();
    expect(toRepair(sparse)).toEqual({ tool: "python_code_edit", because: 'The figure is sparse: "flow" has 12 of 90 expected points.' });
  });
});

function outcome(status: CellStatus, given: Partial<CellOutcome> = {}): CellOutcome {
  return createOutcome({ status, ...given });
}
