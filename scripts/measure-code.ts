/**
 * How large the sources are and how many files four flows pass: `npm run measure`; with `--files` also which. A file counts as visited when V8 saw one of its functions run during the
 * flow, so helpers that a reader never opens count too. Compare two commits by running it in a worktree of each.
 */
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { Session, type Profiler } from "node:inspector";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  cacheDirectory,
  createDatasetMemoryStore,
  createLocalSource,
  createMemoryStore,
  createRuntime,
  createToolCatalog,
  createToolPolicy,
} from "../src/index.ts";
import { createScriptedModel, runTurn, type ModelScript } from "../src/entries/ai-sdk.ts";
import { createLog, loadConfiguration, openServer } from "../src/entries/server.ts";

const root = path.join(import.meta.dirname, "..");
const sources = globSync("src/**/*.ts", { cwd: root }).filter((file) => !/\.test\.ts$|\/fixtures\//.test(file));
const temporary = mkdtempSync(path.join(tmpdir(), "sluice-measure-"));
process.once("exit", () => rmSync(temporary, { recursive: true, force: true }));

const inspector = new Session();
inspector.connect();
inspector.post("Profiler.enable");
inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

const flows = {
  "`sluice run`": measureRun(),
  "a `code_interpreter` call in a turn": await measureStep("code_interpreter", {
    code: "set_result(get_price_1)",
    postProcessingContract: { operation: "derive_metric", reason: "A price.", inputAliases: ["get_price_1"], expectedArtifacts: [] },
  }),
  "an `execute` script with `call_tool`": await measureStep("execute", { code: `await call_tool("get_price", {})` }),
  "a chat request": await measureChat(),
};

const lines = sources.reduce((sum, file) => sum + readFileSync(path.join(root, file), "utf8").split("\n").length - 1, 0);
console.log(`src without tests: ${sources.length} files, ${lines} lines\n\nfiles visited and functions called:`);
for (const [flow, { files, functions }] of Object.entries(flows)) {
  console.log(`  ${flow}: ${files.length} files, ${functions} functions`);
  if (process.argv.includes("--files")) for (const file of files) console.log(`    ${file}`);
}
console.log("\nlongest functions:");
for (const { name, length, file } of findLongestFunctions(10)) console.log(`  ${length} lines  ${name}  ${file}`);
process.exit(0);

interface Visited {
  readonly files: readonly string[];
  readonly functions: number;
}

/** The whole command, from its first line to its last. */
function measureRun(): Visited {
  const cell = path.join(temporary, "cell.py");
  writeFileSync(cell, "set_result(1 + 1)\n");
  return countVisited(
    coverageOf((environment) => execFileSync(path.join(root, "bin/sluice"), ["run", cell], { env: environment, stdio: "ignore" })),
  );
}

/** From the start of the step that makes the call to the start of the next one. A second turn is measured, so that start-up does not count. */
async function measureStep(tool: string, input: Record<string, unknown>): Promise<Visited> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory() });
  const script: ModelScript = {
    steps: [{ toolCalls: [{ tool: "get_price", input: {} }] }, { toolCalls: [{ tool, input }] }, { text: "Done." }],
  };
  const getPrice = {
    name: "get_price",
    description: "A price.",
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
    execute: () => ({ price: 1 }),
  };
  let visited: Visited = { files: [], functions: 0 };
  const failures: string[] = [];
  for (const _ of ["warm-up", "measured"]) {
    await (await runtime.pool()).filled(); // what fills it meanwhile is no part of the flow
    await runTurn(runtime, {
      question: "How much is it?",
      model: createScriptedModel(script),
      catalog: createToolCatalog({ sources: [createLocalSource([getPrice])] }),
      policy: createToolPolicy(),
      artifacts: createMemoryStore(),
      datasets: createDatasetMemoryStore(),
      onEvent(event) {
        if (event.type === "step-start" && event.step === 2) takeCoverage();
        if (event.type === "step-start" && event.step === 3) visited = countVisited(takeCoverage());
        if (event.type === "tool-end" && event.status !== "ok") failures.push(JSON.stringify(event));
      },
    });
  }
  if (failures.length > 0) throw new Error(`A call failed: ${failures[0]}`);
  return visited;
}

/** From the request to the last byte of its stream, the turn included: a second request to a server that is warm, without a pool that fills meanwhile. */
async function measureChat(): Promise<Visited> {
  const environment = { ...process.env, SLUICE_DATA: path.join(temporary, "data"), SLUICE_MODEL: "" };
  writeFileSync(path.join(temporary, "script.json"), JSON.stringify({ steps: [{ text: "Hello." }] }));
  const file = path.join(temporary, "sluice.config.json");
  writeFileSync(file, JSON.stringify({ model: "script:script.json", sandbox: { poolSize: 0 } }));
  const loaded = await loadConfiguration({ file, workingDirectory: temporary, environment });
  const log = createLog({ level: "error", format: "text", write: () => {} });
  await using server = await openServer({ loaded, environment, host: "127.0.0.1", port: 0, log, isOpen: true });
  for (const id of ["warm-up", "measured"]) {
    takeCoverage();
    const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Hello?" }] }];
    const response = await fetch(`${server.url}/api/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, messages, trigger: "submit-message" }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
  }
  return countVisited(takeCoverage());
}

/** What ran since it was last taken. */
function takeCoverage(): Profiler.ScriptCoverage[] {
  let taken: Profiler.ScriptCoverage[] = [];
  inspector.post("Profiler.takePreciseCoverage", (error, { result }) => {
    if (error) throw error;
    taken = result;
  });
  return taken;
}

function countVisited(coverage: readonly Profiler.ScriptCoverage[]): Visited {
  const called = coverage
    .map(({ url, functions }) => ({ file: toSource(url), count: functions.filter(isCalled).length }))
    .filter(({ file, count }) => file !== null && count > 0);
  const files = new Set(called.map(({ file }) => file!));
  return { files: [...files].toSorted(), functions: called.reduce((sum, { count }) => sum + count, 0) };
}

/** A module's own top level, which has no name and begins at 0, is no call. */
function isCalled({ functionName, ranges: [whole] }: Profiler.FunctionCoverage): boolean {
  return whole!.count > 0 && !(functionName === "" && whole!.startOffset === 0);
}

function toSource(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  const file = path.relative(root, fileURLToPath(url));
  return sources.includes(file) ? file : null;
}

/**
 * Type stripping keeps every character's place, so what V8 knows of a function holds for its source. Left out: programs that run on import, and what V8 makes
 * of the fields of a class, which reaches from the first of them to the last over all that is between.
 */
function findLongestFunctions(count: number): { name: string; length: number; file: string }[] {
  const modules = sources.filter((file) => !/-process\.ts$|cli\/main\.ts$/.test(file)).map((file) => path.join(root, file));
  const program = `await Promise.all(${JSON.stringify(modules)}.map((file) => import(file))); process.exit(0);`;
  const coverage = coverageOf((environment) =>
    execFileSync(process.execPath, ["--input-type=module", "-e", program], { env: environment, stdio: "ignore" }),
  );
  return coverage
    .flatMap(({ url, functions }) => {
      const file = toSource(url);
      if (file === null) return [];
      const text = readFileSync(path.join(root, file), "utf8");
      return functions
        .filter(
          ({ functionName, ranges: [whole] }) => !["", "<instance_members_initializer>"].includes(functionName) && whole!.startOffset > 0,
        )
        .map(({ functionName, ranges: [whole] }) => ({
          name: functionName,
          length: text.slice(whole!.startOffset, whole!.endOffset).split("\n").length,
          file,
        }));
    })
    .sort((a, b) => b.length - a.length)
    .slice(0, count);
}

/** What a process of its own ran, from its start to its end. */
function coverageOf(start: (environment: NodeJS.ProcessEnv) => void): Profiler.ScriptCoverage[] {
  const directory = mkdtempSync(path.join(temporary, "coverage-"));
  start({ ...process.env, NODE_V8_COVERAGE: directory });
  const reports = readdirSync(directory).map((name) => JSON.parse(readFileSync(path.join(directory, name), "utf8")));
  return reports.flatMap(({ result }) => result as Profiler.ScriptCoverage[]);
}
