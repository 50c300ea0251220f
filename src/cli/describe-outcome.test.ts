import { expect, test } from "vitest";
import type { CellOutcome } from "../protocol/outcome.ts";
import { describeOutcome } from "./describe-outcome.ts";

const outcome = (resultJson: string): CellOutcome => ({
  schemaVersion: 1,
  status: "ok",
  resultJson,
  stdout: "",
  stderr: "",
  artifacts: [],
  diagnostics: {},
  timing: { queueMs: 0, startMs: 0, runMs: 0, totalMs: 0 },
  usage: { peakMemoryBytes: 0, cpuMs: 0 },
  sandbox: { id: "s", driver: "gvisor", start: "pool" },
});

test("prints long integers exactly, in JSON and in tables", () => {
  expect(describeOutcome(outcome('{"big":1152921504606846977}'), [])).toBe('{\n  "big": 1152921504606846977\n}\n');
  expect(describeOutcome(outcome('[{"big":1152921504606846977}]'), [])).toContain("\n1152921504606846977");
});
