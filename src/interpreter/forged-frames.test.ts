import fc from "fast-check";
import { expect, test } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import { runCell } from "../cells/run-cell.ts";
import { describeOutcome } from "../cli/describe-outcome.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import type { Death, Frame, Lease } from "../sandbox/contract.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import { toToolResult } from "./tool-result.ts";

const CELL = 1;
const artifactChecker = createArtifactChecker();
const code = new Uint8Array();
const request = { cell: CELL, code, rollback: "fork" as const, names: {}, expect: null, limits: defaultLimits, artifactChecker };

/** A sandbox that sends these frames, whatever it is asked. */
function createLease(frames: Frame[]): Lease {
  const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  const death = Promise.withResolvers<Death>();
  const close = async (): Promise<void> => death.resolve({ cause: "closed", detail: "closed" });
  return {
    ...{ id: "lease", driver: "bubblewrap", start: "forked" },
    channel: { send: async () => {}, receive: async () => frames.shift() ?? null, close: () => {} },
    died: death.promise,
    usage: async () => usage,
    resetPeak: async () => usage,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The outcome of a cell whose sandbox ends with this frame, and everything that is made from it. */
async function judge(header: Record<string, unknown>): Promise<CellOutcome> {
  const sent = JSON.parse(JSON.stringify({ type: "done", cell: CELL, ...header })) as Frame["header"];
  const ran = await runCell({ ...request, lease: createLease([{ header: sent, body: new Uint8Array() }]) });
  const outcome = createOutcome({ ...ran, sandbox: { id: "s", driver: "bubblewrap", start: "pool" } });
  const { text } = toToolResult({ tool: "code_interpreter", outcome }, { evidence: createEvidenceStore() });
  expect(JSON.parse(text)).toMatchObject({ status: outcome.status });
  expect(typeof describeOutcome(outcome, [])).toBe("string");
  return outcome;
}

const names = [
  ...["implicitResult", "implicitResultError", "nonFinite", "frames", "unsavedFigures", "showCalls", "savefigCalls", "figureDataOmitted"],
  ...["missingGlyphs", "overlappingLabels", "largeLegend", "lowCoverage", "coverageUnknown", "coverageEvents", "dataQuality"],
  ...[
    "readings",
    "coverageSeries",
    "coverageSeriesOmitted",
    "omittedDiagnostics",
    "malformedDiagnostics",
    "killedForMemory",
    "leftBehind",
    "scratchChanged",
    "inputsChanged",
    "cellUndone",
  ],
  ...["sandboxReplaced", "state", "toString", "__proto__", "constructor"],
];
const fields = [
  "path",
  "count",
  "label",
  "observed",
  "expected",
  "against",
  "largestGap",
  "columns",
  "rows",
  "name",
  "dtype",
  "figure",
  "alias",
  "notes",
  "message",
  ...["period", "entity", "kind", "value", "series", "at", "coverage"],
];
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.array(fc.oneof(fc.constant(null), fc.dictionary(fc.constantFrom(...fields), fc.jsonValue({ maxDepth: 2 })))),
  fc.dictionary(fc.constantFrom(...fields), fc.jsonValue({ maxDepth: 2 })),
);

test("forged diagnostics never fail a call that succeeded, and never pass for those of the host", async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), value), async (diagnostics) => {
      const outcome = await judge({ status: "ok", diagnostics });
      expect(outcome.status).toBe("ok");
      const { malformedDiagnostics = [], ...read } = outcome.diagnostics;
      expect(Object.keys(read).every((name) => names.indexOf(name) <= names.indexOf("omittedDiagnostics"))).toBe(true);
      const sent = Object.keys(diagnostics).filter((name) => name !== "__proto__"); // which zod drops
      expect(new Set([...Object.keys(read), ...(malformedDiagnostics as string[])])).toEqual(new Set(sent));
    }),
    { numRuns: 500 },
  );
});

test("forged errors end the cell clearly", async () => {
  const statuses = ["ok", "python_error", "memory_error", "output_limit", "contract_violation"];
  const anything = fc.jsonValue({ maxDepth: 3 });
  const error = fc.record({
    type: fc.oneof(fc.string(), anything),
    message: fc.oneof(fc.string(), anything),
    line: fc.oneof(fc.integer(), anything),
    column: fc.oneof(fc.double(), anything),
    traceback: fc.oneof(fc.string(), anything),
    limit: fc.oneof(fc.record({ name: fc.string(), allowed: fc.double(), seen: fc.double() }), anything),
  });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...statuses), fc.oneof(error, anything), async (status, forged) => {
      const outcome = await judge({ status, error: forged });
      expect(["ok", "python_error", "out_of_memory", "output_limit", "contract_violation", "sandbox_lost"]).toContain(outcome.status);
    }),
    { numRuns: 500 },
  );
});

test("the forms that the library sends are kept, and others are left out by name", async () => {
  const kept = {
    implicitResult: true,
    nonFinite: [{ path: "$[*]", count: 2 }],
    frames: { $: { columns: [{ name: "a", dtype: "float64" }], rows: 3 } },
    readings: [
      { alias: "sales", encoding: { value: "utf-8", from: "inferred" }, notes: [{ code: "spaces", message: "Skipped.", count: 1 }] },
    ],
    unsavedFigures: 1,
    overlappingLabels: [{ axes: 0, axis: "x", pairs: 2, example: ["a", "b"] }],
    dataQuality: [{ helper: "align_timeseries", overlap: 0.5, sources: [{ name: "a", nulls: { b: 1 }, start: null }], warnings: [] }],
    coverageEvents: [{ period: "2025-03-03", entity: "Harbour", kind: "first_listed", value: 35_000, series: "btc by venue" }],
    coverageSeries: [
      { series: "s", kind: "level", periods: 1, total: 1, stable: 0, first: 4, places: [0], at: [0], change: [1], coverage: [[0, 1]] },
    ],
    coverageSeriesOmitted: [{ series: "s", periods: 2, noted: 1 }],
    omittedDiagnostics: { dataQuality: 4 },
  };
  const nested = JSON.parse("[".repeat(20) + "]".repeat(20)) as unknown;
  const forged = { nonFinite: [null], showCalls: -1, lowCoverage: "all", dataQuality: [{ nested }], sandboxReplaced: { cells: 1 } };
  expect((await judge({ status: "ok", diagnostics: kept })).diagnostics).toEqual(kept);
  expect((await judge({ status: "ok", diagnostics: forged })).diagnostics).toEqual({ malformedDiagnostics: Object.keys(forged) });
});

test("diagnostics that are nested too deeply for a reader are left out", async () => {
  const deep = JSON.parse(`{"dataQuality":${"[".repeat(60_000)}${"]".repeat(60_000)}}`) as Record<string, unknown>;
  const frame = { header: { type: "done", cell: CELL, status: "ok", diagnostics: deep }, body: new Uint8Array() };
  const ran = await runCell({ ...request, lease: createLease([frame]) });
  expect([ran.status, ran.diagnostics]).toEqual(["ok", { malformedDiagnostics: ["dataQuality"] }]);
});
