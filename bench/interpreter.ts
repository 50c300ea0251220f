import { setTimeout as sleep } from "node:timers/promises";
import { createMemoryStore } from "../src/artifacts/create-memory-store.ts";
import { cacheDirectory } from "../src/config/cache-directory.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { toModelAnswer } from "../src/interpreter/to-model-answer.ts";
import { disposeTurnSandbox } from "../src/interpreter/turn-sandbox.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { measurePreview } from "./interpreter-preview.ts";
import { median } from "./median.ts";

const drivers = ["gvisor", "bubblewrap"] as const;
const CELLS = 40;
const WARM_UP = 10;
/** As in the bench of the sandbox: an agent's calls come one by one. Back to back, the fork for the next cell is made on the same cores, while the call is measured. */
const PAUSE_MS = 50;

/** What the runtime adds to a cell, and to reading an output. */
export async function run(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const driver of drivers) {
    const name = `interpreter.added-to-warm-cell.${driver}`;
    rows.push(toBenchRow({ name, ...(await measureWarmCell(driver, PAUSE_MS)), unit: "ms", target: 3 }));
    rows.push(toBenchRow({ name: `${name}.back-to-back`, ...(await measureWarmCell(driver, 0)), unit: "ms" }));
  }
  return [...rows, ...(await measurePreview())];
}

/** From the call to the text that the model reads, less the time from sending the cell to its end: checks, hashes, evidence and words are ours. */
async function measureWarmCell(driver: (typeof drivers)[number], pauseMs: number): Promise<{ value: number; holds: boolean }> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), driver, poolSize: 0 });
  const evidence = createEvidenceStore();
  const { alias } = evidence.add({ tool: "get_rows", output: Array.from({ length: 200 }, (_, n) => ({ n, price: n / 7 })) });
  const turn = runtime.createTurn({ id: "bench", evidence, artifacts: createMemoryStore() });
  const postProcessingContract = { operation: "derive_metric", reason: "It is measured.", inputAliases: [alias], expectedArtifacts: [] };
  const added: number[] = [];
  let ok = true;
  try {
    for (let cell = 0; cell < WARM_UP + CELLS; cell += 1) {
      const code = `frame = to_frame(${alias})\nset_result({"cell": ${cell}, "mean": frame["price"].mean()})`;
      if (pauseMs > 0) await sleep(pauseMs);
      const started = performance.now();
      const answer = await runCodeInterpreter(turn, { code, postProcessingContract });
      toModelAnswer(answer, evidence);
      const took = performance.now() - started;
      ok &&= answer.outcome?.status === "ok";
      if (cell >= WARM_UP) added.push(took - (answer.outcome?.timing.runMs ?? 0));
    }
  } finally {
    await disposeTurnSandbox(turn);
  }
  return { value: median(added), holds: ok };
}
