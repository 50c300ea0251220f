import { describe, expect, it } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { parseToolError } from "../errors/tool-error.ts";
import type { CellOutcome, CellStatus } from "../protocol/outcome.ts";
import { toCellError } from "./to-cell-error.ts";
import { toRepair } from "./tool-result.ts";

const editHint = "Fix it with python_code_edit: variables are as they were before this cell.";

describe("the tool error of a cell", () => {
  it("is null for a successful cell", () => {
    expect(toCellError(outcome("ok"))).toBeNull();
    expect(toRepair(outcome("ok"))).toBeNull();
  });

  it("has the exception, its position, and a hint that the state did not change", () => {
    const failed = outcome("python_error", {
      error: { type: "KeyError", message: "'close'", line: 3, column: 5, traceback: "Traceback …" },
    });
    expect(toCellError(failed)).toEqual({
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

  it.each([
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
    expect(parseToolError(toCellError(outcome(status)))).toEqual({
      ...shared,
      summary: `The cell ended as ${status}.`,
      details: [],
      ...rest,
    });
    const error = { type: "Odd", message: "", line: -1.5, limit: { name: "memoryBytes", allowed: 1, seen: 2 } };
    expect(parseToolError(toCellError(outcome(status, { error })))).toEqual({
      ...shared,
      summary: "Odd",
      details: [{ path: "code", issue: "Odd [memoryBytes: 2 seen, 1 allowed]", received_type: "string" }],
      ...rest,
    });
    expect(toRepair(outcome(status))).toEqual(
      status === "sandbox_lost" ? null : { tool: "python_code_edit", because: `The cell ended as ${status}.` },
    );
  });

  it("has the measured limit", () => {
    const error = { type: "OutOfMemory", message: "The limit is 512 MB.", limit: { name: "memoryBytes", allowed: 512, seen: 600 } };
    expect(toCellError(outcome("out_of_memory", { error }))).toEqual({
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

  it("does not repeat the name of the exception", () => {
    const error = { type: "MemoryError", message: "MemoryError: the limit is 512 MB." };
    expect(toCellError(outcome("out_of_memory", { error }))?.details).toEqual([
      { path: "code", issue: "MemoryError: the limit is 512 MB.", received_type: "string" },
    ]);
  });

  it("is null for low coverage, which still asks for a repair", () => {
    const sparse = outcome("ok", {
      diagnostics: { lowCoverage: [{ axes: 0, label: "flow", observed: 12, expected: 90, coverage: 0.13, largestGap: "30 days" }] },
    });
    expect(toCellError(sparse)).toBeNull();
    expect(toRepair(sparse)).toEqual({ tool: "python_code_edit", because: 'The figure is sparse: "flow" has 12 of 90 expected points.' });
  });
});

function outcome(status: CellStatus, given: Partial<CellOutcome> = {}): CellOutcome {
  return createOutcome({ status, ...given });
}
