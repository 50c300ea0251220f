import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { cacheDirectory, processEnvironment } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

/** Each round has its own sandboxes and is so short that both sides still replay cells instead of forking. A side that switched earlier would look slower. */
const ROUNDS = 6;
const CALLS = 20;
const WARM_UP = 5;
/** The library lives through all rounds, but the server is new in each. Refused calls warm up the JIT of both in the same way. */
const REFUSALS = 200;
/** Pause between calls, so that the work of one sandbox after its cell is not measured as part of the call to the other. */
const PAUSE_MS = 50;
const rows = Array.from({ length: 200 }, (_, n) => ({ n, price: n / 7 }));

interface Caller extends AsyncDisposable {
  /** Runs a call up to the text that a model reads. Returns whether it succeeded. */
  call(args: Record<string, unknown>): Promise<boolean>;
}

interface Pair {
  readonly library: number;
  readonly server: number;
  readonly isOk: boolean;
}

/**
 * Measures how much more a warm `code_interpreter` call costs over stdio than in the library. The two calls run as a pair, each first in half of the pairs. Only
 * the difference within a pair counts, so that load on the machine affects both.
 */
export async function run(): Promise<BenchRow[]> {
  const pairs: Pair[] = [];
  for (let round = 0; round < ROUNDS; round += 1) pairs.push(...(await measureRound()));
  const added = median(pairs.map(({ library, server }) => server - library));
  const inLibrary = median(pairs.map(({ library }) => library));
  const overMcp = median(pairs.map(({ server }) => server));
  const holds = pairs.every(({ isOk }) => isOk);
  return [
    toBenchRow({ name: "mcp.added-to-warm-call", value: Math.max(0, added), unit: "ms", target: 5, holds }),
    toBenchRow({ name: "mcp.warm-call", value: overMcp, unit: "ms", baseline: { name: "the same call in the library", value: inLibrary } }),
  ];
}

async function measureRound(): Promise<Pair[]> {
  await using library = openLibrary();
  await using server = await openServer();
  for (const caller of [library, server])
    for (let call = 0; call < REFUSALS; call += 1)
      if (await caller.call(cellOf(call, "unknown"))) throw new Error("An unknown alias was accepted.");
  const pairs: Pair[] = [];
  for (let call = 0; call < WARM_UP + CALLS; call += 1) {
    const callers = [["library", library] as const, ["server", server] as const];
    const took = { library: 0, server: 0, isOk: true };
    for (const [name, caller] of call % 2 === 0 ? callers : callers.toReversed()) {
      await sleep(PAUSE_MS);
      const startedAt = performance.now();
      took.isOk &&= await caller.call(cellOf(call));
      took[name] = performance.now() - startedAt;
    }
    if (call >= WARM_UP) pairs.push(took);
  }
  return pairs;
}

function cellOf(call: number, alias = "rows"): Record<string, unknown> {
  const postProcessingContract = { operation: "derive_metric", reason: "It is measured.", inputAliases: [alias], expectedArtifacts: [] };
  return { code: `frame = to_frame(rows)\nset_result({"call": ${call}, "mean": frame["price"].mean()})`, postProcessingContract };
}

function openLibrary(): Caller {
  const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  const evidence = createEvidenceStore();
  evidence.addData({ name: "rows", format: "json", bytes: new TextEncoder().encode(JSON.stringify(rows)) });
  const turn = runtime.createTurn({ id: "bench", evidence, artifacts: createMemoryStore() });
  return {
    async call(args) {
      const answer = await runCodeInterpreter(turn, args);
      return answer.error === null;
    },
    async [Symbol.asyncDispose]() {
      await disposeTurnSandbox(turn);
      await runtime.close();
    },
  };
}

async function openServer(): Promise<Caller> {
  const directory = await mkdtemp(path.join(tmpdir(), "sluice-bench-"));
  const config = path.join(directory, "sluice.config.json");
  // As in the library: do not create a spare sandbox while calls are measured.
  await writeFile(config, JSON.stringify({ sandbox: { poolSize: 0 }, artifacts: { directory } }));
  const client = new Client({ name: "bench", version: "1.0.0" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  const env = Object.fromEntries(
    Object.entries(processEnvironment()).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const command = path.join(import.meta.dirname, "../bin/sluice");
  await client.connect(new StdioClientTransport({ command, args: ["mcp", "--config", config], env, stderr: "ignore" }));
  await client.callTool({ name: "store_data", arguments: { name: "rows", data: rows } });
  return {
    call: async (args) => (await client.callTool({ name: "code_interpreter", arguments: args }, { timeout: 120_000 })).isError !== true,
    async [Symbol.asyncDispose]() {
      await client.close();
      await rm(directory, { recursive: true });
    },
  };
}
