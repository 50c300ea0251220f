import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { createMemoryStore } from "../src/artifacts/create-memory-store.ts";
import { cacheDirectory } from "../src/config/cache-directory.ts";
import { createRuntime, type Runtime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createDatasetMemoryStore } from "../src/evidence/dataset/create-dataset-memory-store.ts";
import { createScriptedModel } from "../src/models/create-scripted-model.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { createConversation } from "../src/turn/create-conversation.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const STEPS = 9;
const ROUNDS = 40;
const EVIDENCE_BYTES = 200_000_000;

const inputSchema = { type: "object", properties: { page: { type: "integer" } } } as const;
const rows = Array.from({ length: 50 }, (_, day) => ({ day, price: 100 + (day % 7), venue: `venue ${day % 5}` }));
const script = {
  steps: [
    ...Array.from({ length: STEPS - 1 }, (_, page) => ({ toolCalls: [{ tool: "get_page", input: { page } }] })),
    { toolCalls: [{ tool: "final_response", input: { answer: "Done." } }] },
  ],
  synthesis: "Done.",
};

/** The runtime's own time a step, without model and tools: a whole turn beside the bare loop of the AI SDK with the same scripted model and the same tool. */
export async function run(): Promise<BenchRow[]> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  return [
    await measure(runtime, { name: "turn: own time per step beyond the bare loop", target: 5, evidenceBytes: 0 }),
    await measure(runtime, { name: "turn: own time per step with 200 MB of evidence", target: 10, evidenceBytes: EVIDENCE_BYTES }),
  ];
}

interface Case {
  readonly name: string;
  readonly target: number;
  readonly evidenceBytes: number;
}

async function measure(runtime: Runtime, { name, target, evidenceBytes }: Case): Promise<BenchRow> {
  const evidence = createEvidenceStore();
  if (evidenceBytes > 0) for (let part = 0; part < 10; part += 1) evidence.add({ tool: "large", output: jsonRows(evidenceBytes / 10) });
  const differences: number[] = [];
  const rounds = evidenceBytes > 0 ? ROUNDS / 2 : ROUNDS;
  for (let round = 0; round < rounds; round += 1) {
    const bare = await timeBare();
    const ours = await timeOurs(runtime, evidence);
    if (round >= 5) differences.push((ours - bare) / STEPS);
  }
  return toBenchRow({ name, value: median(differences), unit: "ms", target });
}

/** The same number of model calls and tool calls; results go to the model as they are. */
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

/** From the first step to the last: planning, the dataset and synthesis are once a turn, and not a step's. */
async function timeOurs(runtime: Runtime, evidence: ReturnType<typeof createEvidenceStore>): Promise<number> {
  const catalog = createToolCatalog({
    sources: [createLocalSource([{ name: "get_page", description: "A page of prices.", inputSchema, execute: () => rows }])],
  });
  let began = 0;
  let ended = 0;
  await runTurn(runtime, {
    question: "Go.",
    model: createScriptedModel(script),
    conversation: createConversation({ evidence }),
    catalog,
    policy: createToolPolicy(),
    artifacts: createMemoryStore(),
    datasets: createDatasetMemoryStore(),
    onEvent: ({ type, ...event }) => {
      if (type === "step-start" && began === 0) began = performance.now();
      if (type === "tool-end" && "tool" in event && event.tool === "final_response") ended = performance.now();
    },
  });
  await catalog[Symbol.asyncDispose]();
  return ended - began;
}

function jsonRows(bytes: number): string {
  const texts: string[] = [];
  for (let size = 2, id = 0; size < bytes; id += 1) {
    const row = `{"id":${id},"venue":"venue ${id % 40}","reserve":${(id * 7) % 1000}.25,"listed":${id % 2 === 0}}`;
    texts.push(row);
    size += row.length + 1;
  }
  return `[${texts.join(",")}]`;
}
