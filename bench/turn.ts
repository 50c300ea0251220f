import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime, type Runtime } from "../src/create-runtime.ts";
import type { DatasetStore } from "../src/evidence/dataset/dataset.ts";
import { createScriptedModel } from "../src/models/create-scripted-model.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const STEPS = 9;
const ROUNDS = 40;
const EVIDENCE_BYTES = 200_000_000;

const inputSchema = { type: "object", properties: { page: { type: "integer" } } } as const;
const rows = Array.from({ length: 50 }, (_, day) => ({ day, price: 100 + (day % 7), venue: `venue ${day % 5}` }));
const pages = [
  ...Array.from({ length: STEPS - 1 }, (_, page) => ({ toolCalls: [{ tool: "get_page", input: { page } }] })),
  { toolCalls: [{ tool: "final_response", input: { answer: "Done." } }] },
];
const script = { steps: pages, synthesis: "Done." };
/** Starts with ten outputs of 20 MB, whose previews the model reads again in every later step. */
const largeScript = {
  steps: [{ toolCalls: Array.from({ length: 10 }, (_, part) => ({ tool: "get_large", input: { part } })) }, ...pages],
  synthesis: "Done.",
};

/** Measures the time that the runtime adds to a step: a complete turn compared with the plain loop of the AI SDK, with the same scripted model and tool. */
export async function run(): Promise<BenchRow[]> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  return [
    await measure(runtime, { name: "turn: own time per step beyond the bare loop", target: 5, isLarge: false }),
    await measure(runtime, { name: "turn: own time per step with 200 MB of evidence", target: 10, isLarge: true }),
  ];
}

async function measure(runtime: Runtime, { name, target, isLarge }: { name: string; target: number; isLarge: boolean }): Promise<BenchRow> {
  const large = isLarge ? jsonRows(EVIDENCE_BYTES / 10) : "[]";
  const differences: number[] = [];
  for (let round = 0; round < (isLarge ? 8 : ROUNDS); round += 1) {
    const bare = await timeBare();
    const ours = await timeOurs(runtime, { large, isLarge });
    if (round >= (isLarge ? 2 : 5)) differences.push((ours - bare) / STEPS);
  }
  return toBenchRow({ name, value: median(differences), unit: "ms", target });
}

/** Runs the same number of model and tool calls, and passes results to the model unchanged. */
async function timeBare(): Promise<number> {
  const tools = {
    get_page: tool({ description: "A page of prices.", inputSchema: jsonSchema(inputSchema), execute: () => rows }),
    final_response: tool({ description: "The answer.", inputSchema: jsonSchema({ type: "object" }), execute: () => "ok" }),
  };
  const started = performance.now();
  await generateText({
    model: createScriptedModel(script),
    tools,
    stopWhen: isStepCount(STEPS),
    prompt: "Go.",
    providerOptions: { sluice: { phase: "step" } },
  });
  return performance.now() - started;
}

/** Measures the steps only. Planning, the dataset and synthesis happen once per turn, and fetching large outputs is the time of the tool. */
async function timeOurs(runtime: Runtime, { large, isLarge }: { large: string; isLarge: boolean }): Promise<number> {
  const getPage = { name: "get_page", description: "A page of prices.", inputSchema, execute: () => rows };
  const getLarge = { name: "get_large", description: "Many rows.", execute: () => large };
  const catalog = createToolCatalog({ sources: [createLocalSource([getPage, getLarge])] });
  let began = 0;
  let ended = 0;
  await runTurn(runtime, {
    question: "Go.",
    model: createScriptedModel(isLarge ? largeScript : script),
    catalog,
    policy: createToolPolicy(),
    artifacts: createMemoryStore(),
    datasets: noDatasets,
    budgets: { steps: 2 * STEPS },
    onEvent: (event) => {
      if (event.type === "step-start" && event.step === (isLarge ? 2 : 1)) began = performance.now();
      if (event.type === "tool-end" && event.tool === "final_response") ended = performance.now();
    },
  });
  await catalog[Symbol.asyncDispose]();
  return ended - began;
}

/** Stores nothing: writing the dataset is not part of a step, and 200 MB would only fill the memory. */
const noDatasets: DatasetStore = {
  put: () => Promise.reject(new Error("not in a bench")),
  open: () => Promise.resolve(null),
};

function jsonRows(bytes: number): string {
  const texts: string[] = [];
  for (let size = 2, id = 0; size < bytes; id += 1) {
    const row = `{"id":${id},"venue":"venue ${id % 40}","reserve":${(id * 7) % 1000}.25,"listed":${id % 2 === 0}}`;
    texts.push(row);
    size += row.length + 1;
  }
  return `[${texts.join(",")}]`;
}
