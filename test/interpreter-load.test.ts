import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import type { Runtime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import { withLimits } from "../src/sandbox/limits.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

const TURNS = 50;
const CALLS = 4;
const PLACES = 4;

test.each(testedDrivers)(
  `200 calls over 50 concurrent turns on %s, ${PLACES} sandboxes at a time: no call is lost or mixed up, and no process is left`,
  async (driver) => {
    const limits = withLimits({ memoryBytes: 512 * 1024 * 1024 });
    const runtime = openTestRuntime(driver, { limits, poolSize: 1, maxSandboxes: PLACES, queueDeadlineMs: 300_000 });
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, runtime.gate.taken)), 5);
    try {
      const answers = await Promise.all(Array.from({ length: TURNS }, (_, index) => runTurn(runtime, index)));
      for (const [index, values] of answers.entries()) {
        const secret = index * 1000;
        expect(values, `turn ${index}`).toEqual([secret, [secret, secret + 1], [secret, secret + 1, secret + 2], 3]);
      }
      expect(most).toBeLessThanOrEqual(PLACES);
    } finally {
      clearInterval(watch);
      await runtime.close();
    }
    expect([runtime.gate.taken, runtime.gate.waiting]).toEqual([0, 0]);
    await expectNoProcessLeft();
  },
  280_000,
);

/** One conversation whose alias has its own value; every turn uses the same names. Its four calls are sent at once. */
async function runTurn(runtime: Runtime, index: number): Promise<unknown[]> {
  const evidence = createEvidenceStore();
  const { alias } = evidence.add({ tool: "get_secret", output: JSON.stringify({ value: index * 1000 }) });
  const turn = runtime.createTurn({ id: `turn-${index}`, evidence, artifacts: createMemoryStore() });
  const cells = [
    `seen = [${alias}["value"]]\nset_result(seen[0])`,
    "seen.append(seen[0] + 1)\nset_result(seen)",
    "seen.append(seen[0] + 2)\nset_result(seen)",
    "set_result(len(seen))",
  ];
  expect(cells.length).toBe(CALLS);
  try {
    const answers = await Promise.all(cells.map((code) => runCodeInterpreter(turn, toCall(code, alias))));
    expect(evidence.aliases()).toEqual([alias, "result_1", "result_2", "result_3", "result_4"]);
    return answers.map(({ outcome, error }) => (error === null ? (JSON.parse(outcome!.resultJson!) as unknown) : error.summary));
  } finally {
    await disposeTurnSandbox(turn);
  }
}

function toCall(code: string, alias: string): unknown {
  return {
    code,
    postProcessingContract: { operation: "derive_metric", reason: "It is measured.", inputAliases: [alias], expectedArtifacts: [] },
  };
}

/** Waits up to 5 s until nothing is left behind. */
async function expectNoProcessLeft(): Promise<void> {
  const deadline = performance.now() + 5_000;
  let left = await sandboxProcesses();
  while (left.length > 0 && performance.now() < deadline) {
    await wait(50);
    left = await sandboxProcesses();
  }
  expect(left).toEqual([]);
}

/** Processes in a cgroup of this process, or with its run directory in their arguments. */
async function sandboxProcesses(): Promise<string[]> {
  const found: string[] = [];
  for (const id of (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    const [cgroup, command] = await Promise.all(
      ["cgroup", "cmdline"].map((file) => readFile(`/proc/${id}/${file}`, "utf8").catch(() => "")),
    );
    if (cgroup!.includes(`sluice-${process.pid}-`) || new RegExp(`/sluice-\\d+/${process.pid}-`).test(command!))
      found.push(`${id} ${command}`);
  }
  return found;
}
