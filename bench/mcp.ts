import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createMemoryStore } from "../src/artifacts/create-memory-store.ts";
import { cacheDirectory } from "../src/config/cache-directory.ts";
import { processEnvironment } from "../src/config/process-environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { toModelAnswer } from "../src/interpreter/to-model-answer.ts";
import { disposeTurnSandbox } from "../src/interpreter/turn-sandbox.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const CALLS = 40;
const WARM_UP = 10;
/** As in the other benches calls come one by one: what the one sandbox does after its cell must not be measured as a part of the other's call. */
const PAUSE_MS = 50;
const rows = Array.from({ length: 200 }, (_, n) => ({ n, price: n / 7 }));

/** One call of each in turn, so that what the machine does meanwhile is the same for both. */
interface Caller extends AsyncDisposable {
  /** From the call to what a model reads. Whether it succeeded. */
  call(args: Record<string, unknown>): Promise<boolean>;
}

/** What a warm `code_interpreter` call over stdio costs more than the same call in the library. */
export async function run(): Promise<BenchRow[]> {
  await using library = openLibrary();
  await using server = await openServer();
  const took = { library: [] as number[], server: [] as number[] };
  let holds = true;
  for (let call = 0; call < WARM_UP + CALLS; call += 1) {
    const code = `frame = to_frame(rows)\nset_result({"call": ${call}, "mean": frame["price"].mean()})`;
    const contract = { operation: "derive_metric", reason: "It is measured.", inputAliases: ["rows"], expectedArtifacts: [] };
    for (const [name, caller] of [["library", library] as const, ["server", server] as const]) {
      await sleep(PAUSE_MS);
      const startedAt = performance.now();
      const isOk = await caller.call({ code, postProcessingContract: contract });
      if (call >= WARM_UP) took[name].push(performance.now() - startedAt);
      holds &&= isOk;
    }
  }
  const [inLibrary, overMcp] = [median(took.library), median(took.server)];
  return [
    toBenchRow({ name: "mcp.added-to-warm-call", value: Math.max(0, overMcp - inLibrary), unit: "ms", target: 5, holds }),
    toBenchRow({ name: "mcp.warm-call", value: overMcp, unit: "ms", baseline: { name: "the same call in the library", value: inLibrary } }),
  ];
}

function openLibrary(): Caller {
  const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  const evidence = createEvidenceStore();
  evidence.addData({ name: "rows", format: "json", bytes: new TextEncoder().encode(JSON.stringify(rows)) });
  const turn = runtime.createTurn({ id: "bench", evidence, artifacts: createMemoryStore() });
  return {
    async call(args) {
      const answer = await runCodeInterpreter(turn, args);
      toModelAnswer(answer, evidence);
      return answer.envelope === null;
    },
    async [Symbol.asyncDispose]() {
      await disposeTurnSandbox(turn);
      await runtime.close();
    },
  };
}

async function openServer(): Promise<Caller> {
  const client = new Client({ name: "bench", version: "1.0.0" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  const env = Object.fromEntries(
    Object.entries(processEnvironment()).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const command = path.join(import.meta.dirname, "../bin/sluice");
  await client.connect(new StdioClientTransport({ command, args: ["mcp"], env, stderr: "ignore" }));
  await client.callTool({ name: "store_data", arguments: { name: "rows", data: rows } });
  return {
    call: async (args) => (await client.callTool({ name: "code_interpreter", arguments: args }, { timeout: 120_000 })).isError !== true,
    [Symbol.asyncDispose]: () => client.close(),
  };
}
