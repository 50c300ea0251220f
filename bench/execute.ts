import { cacheDirectory } from "../src/config/environment.ts";
import type { EvidenceStore } from "../src/evidence/evidence-store.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createOutputReader } from "../src/evidence/reading/create-output-reader.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { defaultExecuteLimits, type CallTool, type ToolReply } from "../src/execute/engine.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";
import { createInvokeTool, type InvokeTool } from "../src/execute/invoke-tool.ts";
import { runExecute, toExecuteJson } from "../src/execute/run-execute.ts";
import type { ToolAnswer, ToolSource } from "../src/tools/backend-tool.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { openExtraWheels } from "../src/sandbox/snapshot/wheels.ts";
import { openPython, type BarePython } from "./baselines/open-python.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const LARGE_BYTES = 10_000_000;
const scripts = {
  trivial: "return 1 + 1",
  sequential: 'for i in range(1000):\n    await call_tool("noop", {})\nreturn 1',
  one: 'await call_tool("slow", {})\nreturn 1',
  gathered: 'import asyncio\nreturn len(await asyncio.gather(*[call_tool("slow", {}) for i in range(100)]))',
} as const;

/** Compares `execute` with its own parts, and with the CodeMode of FastMCP on the same scripts. The two alternate, so that a busy machine slows both. */
export async function run(): Promise<BenchRow[]> {
  await using engine = createMontyEngine({ poolSize: 1, memoryBytes: 400_000_000 });
  await engine.warm();
  const rows = [await measureTrivial(engine), await measureSequential(engine), await measureGathered(engine), await measureLarge(engine)];
  return [...rows, ...(await compareWithCodeMode(engine))];
}

async function measureTrivial(engine: MontyEngine): Promise<BenchRow> {
  const times = await repeat(150, () => timeWhole(engine, scripts.trivial));
  return toBenchRow({ name: "execute: trivial script in a warm child", value: median(times), unit: "ms", target: 1 });
}

async function measureSequential(engine: MontyEngine): Promise<BenchRow> {
  const times = await repeat(9, () => timeWhole(engine, scripts.sequential));
  return toBenchRow({ name: "execute: 1,000 calls one after another", value: median(times), unit: "ms", target: 350 });
}

async function measureGathered(engine: MontyEngine): Promise<BenchRow> {
  const one: number[] = [];
  const gathered: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    one.push(await timeWhole(engine, scripts.one));
    gathered.push(await timeWhole(engine, scripts.gathered));
  }
  const baseline = { name: "one call of the same tool", value: median(one) };
  return toBenchRow({ name: "execute: 100 gathered calls of 20 ms", value: median(gathered), unit: "ms", baseline, target: 2.5 });
}

/** Compares with `json.loads` of the same text in Monty, which is the minimum for giving Python the value. */
async function measureLarge(engine: MontyEngine): Promise<BenchRow> {
  const text = createRows(LARGE_BYTES);
  const invokeLarge = createInvoke([createTextSource("large", text)]);
  const reader = createOutputReader();
  const fetched: number[] = [];
  const loaded: number[] = [];
  for (let round = 0; round < 8; round += 1) {
    const evidence = createEvidenceStore({ reader });
    fetched.push(await timeWhole(engine, 'x = await call_tool("large", {})\nreturn len(x)', { invoke: invokeLarge, evidence }));
    // The text arrives as a JSON string, which is cheap. The calls of begin and end time only json.loads.
    loaded.push(await timeLoads(engine, text));
  }
  const baseline = { name: "json.loads in Monty", value: median(loaded.slice(1)) };
  return toBenchRow({ name: "execute: 10 MB through call_tool", value: median(fetched.slice(1)), unit: "ms", baseline, target: 2 });
}

/** A source that answers like an MCP server: with JSON as text. */
function createTextSource(name: string, text: string): ToolSource {
  const call = (): Promise<ToolAnswer> => Promise.resolve({ output: { content: [{ type: "text", text }] }, as: "mcp" });
  const tool = { name, server: "bench", description: "Rows.", inputSchema: { type: "object" }, annotations: {}, tags: [], call };
  return { name: "bench", tools: () => ({ tools: [tool], gap: null }), [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function timeLoads(engine: MontyEngine, text: string): Promise<number> {
  let begin = 0;
  let end = 0;
  const callTool: CallTool = ({ name }) => {
    if (name === "text") return reply(JSON.stringify(text));
    if (name === "begin") begin = performance.now();
    else end = performance.now();
    return reply("null");
  };
  const code =
    'import json\ntext = await call_tool("text", {})\nawait call_tool("begin", {})\nx = json.loads(text)\nawait call_tool("end", {})\nreturn len(x)';
  const { end: outcome } = await engine.run({ code, limits, callTool });
  if (outcome.kind !== "value") throw new Error(JSON.stringify(outcome).slice(0, 500));
  return end - begin;
}

async function compareWithCodeMode(engine: MontyEngine): Promise<BenchRow[]> {
  let peer: BarePython;
  try {
    peer = await openCodeMode();
  } catch (error) {
    process.stderr.write(`The CodeMode of FastMCP does not run on this machine, so there is no comparison: ${(error as Error).message}\n`);
    return [toBenchRow({ name: "execute: beside FastMCP's CodeMode (it does not run here)", value: 0, unit: "" })];
  }
  await using python = peer;
  const rows: BenchRow[] = [];
  for (const [name, rounds] of [
    ["trivial", 40],
    ["sequential", 3],
    ["gathered", 5],
  ] as const) {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      ours.push(await timeWhole(engine, scripts[name]));
      theirs.push((await python.ask(JSON.stringify(scripts[name])))["ms"]!);
    }
    const baseline = { name: "FastMCP CodeMode", value: median(theirs) };
    rows.push(toBenchRow({ name: `execute: ${name} script beside CodeMode`, value: median(ours), unit: "ms", baseline, target: 1 }));
  }
  return rows;
}

/** Times everything that a client's call passes through: engine selection, catalog, policy and schema of each tool call, and the evidence store. */
async function timeWhole(
  engine: MontyEngine,
  code: string,
  { invoke = invokeSmall, evidence = createEvidenceStore() }: { invoke?: InvokeTool; evidence?: EvidenceStore } = {},
): Promise<number> {
  const started = performance.now();
  const answer = await runExecute({ code, engines: { monty: engine }, limits, evidence, invoke });
  toExecuteJson(answer);
  const elapsed = performance.now() - started;
  if (answer.status !== "ok") throw new Error(JSON.stringify(answer.error));
  return elapsed;
}

function createInvoke(sources: readonly ToolSource[]): InvokeTool {
  return createInvokeTool({ catalog: createToolCatalog({ maxConcurrentCalls: 100, sources }), policy: createToolPolicy() });
}

const invokeSmall = createInvoke([
  createLocalSource([
    { name: "noop", description: "Does nothing.", execute: () => ({}) },
    { name: "slow", description: "Takes 20 ms.", execute: () => new Promise((resolve) => setTimeout(() => resolve({}), 20)) },
  ]),
]);

async function openCodeMode(): Promise<BarePython> {
  const cache = cacheDirectory();
  await using runtime = createRuntime({ cacheDirectory: cache, driver: "bubblewrap", poolSize: 0, maxSandboxes: 1 });
  const { rootfs } = await runtime.snapshot();
  const wheels = await openExtraWheels({ cacheDirectory: cache, name: "bench-execute" });
  const python = openPython({ rootfs, script: "fastmcp_code_mode.py", binds: { "/tmp/wheels": wheels }, pythonPath: "/tmp/wheels" });
  await python.next();
  return python;
}

const limits = { ...defaultExecuteLimits, memoryBytes: 400_000_000, toolCalls: 10_000, concurrentToolCalls: 100, executionMs: 60_000 };

function reply(json: string): Promise<ToolReply> {
  return Promise.resolve({ ok: true, json });
}

async function repeat(rounds: number, measure: () => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) times.push(await measure());
  return times;
}

function createRows(bytes: number): string {
  const rows: string[] = [];
  for (let size = 2, id = 0; size < bytes; id += 1) {
    const row = `{"id":${id},"name":"campaign ${id}","cost":${(id * 7) % 1000}.25,"clicks":${id % 97},"active":${id % 2 === 0}}`;
    rows.push(row);
    size += row.length + 1;
  }
  return `[${rows.join(",")}]`;
}
