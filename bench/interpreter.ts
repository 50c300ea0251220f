import { setTimeout as sleep } from "node:timers/promises";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { measurePreview } from "./interpreter-preview.ts";
import { median } from "./median.ts";

const drivers = ["gvisor", "bubblewrap"] as const;
const CELLS = 100;
const WARM_UP = 10;
/** Pause between calls, as between the calls of an agent. Without it, the fork for the next cell runs on the same cores while a call is measured. */
const PAUSE_MS = 50;

/** Measures what the runtime adds to a cell and to reading an output. */
export async function run(): Promise<BenchRow[]> {
  const rows = [...(await measureWarmCells(PAUSE_MS)), ...(await measureWarmCells(0))];
  return [...rows, ...(await measurePreview())];
}

/** The drivers alternate call by call, so that load on the machine affects all of them. */
async function measureWarmCells(pauseMs: number): Promise<BenchRow[]> {
  await using turns = new AsyncDisposableStack();
  const measured = [];
  for (const driver of drivers) measured.push({ driver, added: [] as number[], turn: turns.use(openTurn(driver)) });
  for (let cell = 0; cell < WARM_UP + CELLS; cell += 1) {
    for (const { added, turn } of measured) {
      if (pauseMs > 0) await sleep(pauseMs);
      const ms = await turn.measure(cell);
      if (cell >= WARM_UP) added.push(ms);
    }
  }
  return measured.map(({ driver, added }) => {
    const name = `interpreter.added-to-warm-cell.${driver}`;
    return pauseMs > 0
      ? toBenchRow({ name, value: median(added), unit: "ms", target: 3 })
      : toBenchRow({ name: `${name}.back-to-back`, value: median(added), unit: "ms" });
  });
}

interface MeasuredTurn extends AsyncDisposable {
  /** Time from the call to the text that the model reads, minus the time of the cell itself: checks, hashes, evidence and text. */
  measure(cell: number): Promise<number>;
}

function openTurn(driver: (typeof drivers)[number]): MeasuredTurn {
  const runtime = createRuntime({ cacheDirectory: cacheDirectory(), driver, poolSize: 0 });
  const evidence = createEvidenceStore();
  const { alias } = evidence.add({ tool: "get_rows", output: Array.from({ length: 200 }, (_, n) => ({ n, price: n / 7 })) });
  const turn = runtime.createTurn({ id: "bench", evidence, artifacts: createMemoryStore() });
  const postProcessingContract = { operation: "derive_metric", reason: "It is measured.", inputAliases: [alias], expectedArtifacts: [] };
  return {
    async measure(cell) {
      const code = `frame = to_frame(${alias})\nset_result({"cell": ${cell}, "mean": frame["price"].mean()})`;
      const started = performance.now();
      const answer = await runCodeInterpreter(turn, { code, postProcessingContract });
      const took = performance.now() - started;
      if (answer.outcome?.status !== "ok") throw new Error(JSON.stringify(answer.error));
      return took - answer.outcome.timing.runMs;
    },
    async [Symbol.asyncDispose]() {
      await disposeTurnSandbox(turn);
      await runtime[Symbol.asyncDispose]();
    },
  };
}
