/**
 * Measures the size of the sources and how many files four flows visit: `npm run measure`, with `--files` to list them. A file counts as visited if one of its functions
 * ran during the flow, so small helpers count too. To compare two commits, run it in a worktree of each.
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

interface VisitedCode {
  readonly files: readonly string[];
  readonly functions: number;
}

/** Measures the whole command. */
function measureRun(): VisitedCode {
  const cell = path.join(temporary, "cell.py");
  writeFileSync(cell, "set_result(1 + 1)\n");
  return countVisited(
    coverageOf((environment) => execFileSync(path.join(root, "bin/sluice"), ["run", cell], { env: environment, stdio: "ignore" })),
  );
}

/** Measures from the start of the step with the call to the start of the next step. Measures the second turn, so that start-up does not count. */
async function measureStep(tool: string, input: Record<string, unknown>): Promise<VisitedCode> {
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
  let visited: VisitedCode = { files: [], functions: 0 };
  const failures: string[] = [];
  for (const _ of ["warm-up", "measured"]) {
    await (await runtime.pool()).filled(); // filling the pool is not part of the flow
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

/** Measures from the request to the last byte of its stream, including the turn. Measures the second request to a warm server without a pool. */
async function measureChat(): Promise<VisitedCode> {
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

/** Returns the functions that ran since the last call. */
function takeCoverage(): Profiler.ScriptCoverage[] {
  let coverage: Profiler.ScriptCoverage[] = [];
  inspector.post("Profiler.takePreciseCoverage", (error, { result }) => {
    if (error) throw error;
    coverage = result;
  });
  return coverage;
}

function countVisited(coverage: readonly Profiler.ScriptCoverage[]): VisitedCode {
  const called = coverage
    .map(({ url, functions }) => ({ file: toSource(url), count: functions.filter(isCalled).length }))
    .filter(({ file, count }) => file !== null && count > 0);
  const files = new Set(called.map(({ file }) => file!));
  return { files: [...files].toSorted(), functions: called.reduce((sum, { count }) => sum + count, 0) };
}

/** Ignores the top level of a module, which has no name and starts at offset 0. */
function isCalled({ functionName, ranges: [range] }: Profiler.FunctionCoverage): boolean {
  return range!.count > 0 && !(functionName === "" && range!.startOffset === 0);
}

function toSource(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  const file = path.relative(root, fileURLToPath(url));
  return sources.includes(file) ? file : null;
}

/**
 * Type stripping preserves positions, so the ranges that V8 reports are valid for the sources. Skips programs that run on import, and the initializer that V8
 * creates for class fields, whose range spans from the first field to the last.
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
          ({ functionName, ranges: [range] }) => !["", "<instance_members_initializer>"].includes(functionName) && range!.startOffset > 0,
        )
        .map(({ functionName, ranges: [range] }) => ({
          name: functionName,
          length: text.slice(range!.startOffset, range!.endOffset).split("\n").length,
          file,
        }));
    })
    .sort((a, b) => b.length - a.length)
    .slice(0, count);
}

/** Returns the coverage of a separate process, from start to end. */
function coverageOf(start: (environment: NodeJS.ProcessEnv) => void): Profiler.ScriptCoverage[] {
  const directory = mkdtempSync(path.join(temporary, "coverage-"));
  start({ ...process.env, NODE_V8_COVERAGE: directory });
  const reports = readdirSync(directory).map((name) => JSON.parse(readFileSync(path.join(directory, name), "utf8")));
  return reports.flatMap(({ result }) => result as Profiler.ScriptCoverage[]);
}
