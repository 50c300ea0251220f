import { expect, test } from "vitest";
import { parseProbe } from "../protocol/probe.ts";
import type { CellSession } from "../cells/open-cell-session.ts";
import { runPythonInSandbox } from "./run-python-in-sandbox.ts";

test("an unexpected failure emits a probe with the code INTERNAL_ERROR", async () => {
  const probes: string[] = [];
  const cellSession = { run: () => Promise.reject(new TypeError("odd")) } as unknown as CellSession;
  const call = { cellSession, turnId: "t", code: "1", onProbe: (line: string) => void probes.push(line) };
  await expect(runPythonInSandbox(call)).rejects.toThrow("odd");
  expect(probes.map((line) => parseProbe(line)?.fields)).toEqual([
    { event: "python_call_failure", turnId: "t", stage: "start", status: "INTERNAL_ERROR", exitCode: null, error: "odd" },
  ]);
});
