import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { openServerProcess } from "./open-server-process.ts";
import { percentile, runLoad } from "./serve-load.ts";

const CLIENTS = 100;
const READS_PER_SECOND = 50;
const IDLE_SECONDS = 15;
const LOAD_SECONDS = 120;

const root = path.join(import.meta.dirname, "..");
const server = { command: process.execPath, args: [path.join(root, "examples/backends/market/market-server.ts")] };
const contract = {
  operation: "derive_metric",
  reason: "The mean is asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts: ["image"],
};
const code =
  'prices = to_frame(get_prices_1)\nplt.plot(prices["close"])\nsave_figure("A line of daily closing prices", title="Prices")\nset_result(prices["close"].mean())\n';
const script = {
  plan: { chartIntent: "explicit" },
  steps: [
    { toolCalls: [{ tool: "get_prices", input: { asset: "BTC" } }] },
    { toolCalls: [{ tool: "code_interpreter", input: { code, postProcessingContract: contract } }] },
    { toolCalls: [{ tool: "final_response", input: { answer: "Figure 1 has it." } }] },
  ],
  synthesis: "Figure 1 has it.",
};

/** Puts load on a server process and measures failures, memory growth and the latency of artifact reads. */
export async function run(): Promise<BenchRow[]> {
  const configuration = { mcpServers: { market: server }, model: "script:script.json" };
  await using opened = await openServerProcess({ configuration, files: { "script.json": JSON.stringify(script) } });
  return await measure(opened.child, { url: opened.url, token: opened.token! });
}

async function measure(child: ChildProcess, place: { url: string; token: string }): Promise<BenchRow[]> {
  const shared = { ...place, readsPerSecond: READS_PER_SECOND };
  await runLoad({ ...shared, clients: 1, artifacts: [], until: new AbortController().signal, maxTurns: 1 });
  const artifacts = await listArtifacts(place);
  const idle = await runLoad({ ...shared, clients: 0, artifacts, until: AbortSignal.timeout(IDLE_SECONDS * 1000) });
  const atMinuteOne = sleep(60_000).then(() => residentMegabytes(child));
  const load = await runLoad({ ...shared, clients: CLIENTS, artifacts, until: AbortSignal.timeout(LOAD_SECONDS * 1000) });
  const atEnd = residentMegabytes(child);
  for (const failure of load.failures.slice(0, 5)) process.stderr.write(`${failure}\n`);
  process.stderr.write(`${load.turns} turns, ${load.refusals} responses with 429, ${load.readMs.length} reads\n`);
  const holds = load.failures.length === 0 && load.turns > 0;
  return [
    toBenchRow({
      name: "serve: failures under load (429 with Retry-After does not count)",
      value: load.failures.length,
      unit: "",
      target: 0,
      holds,
    }),
    toBenchRow({
      name: "serve: resident memory at the end of the load",
      value: atEnd,
      unit: "MB",
      baseline: { name: "after one minute of it", value: await atMinuteOne },
      target: 1.1,
      holds,
    }),
    toBenchRow({
      name: "serve: p95 of an artifact under load",
      value: percentile(load.readMs, 0.95),
      unit: "ms",
      baseline: { name: "p95 idle", value: percentile(idle.readMs, 0.95) },
      target: 5,
      holds,
    }),
    toBenchRow({ name: "serve: turns in two minutes", value: load.turns, unit: "" }),
  ];
}

async function listArtifacts({ url, token }: { url: string; token: string }): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const { turns } = (await (await fetch(`${url}/api/turns`, { headers })).json()) as { turns: { turnId: string }[] };
  const turn = (await (await fetch(`${url}/api/turns/${turns[0]!.turnId}`, { headers })).json()) as {
    result: { artifacts: { url: string }[] };
  };
  return turn.result.artifacts.map((artifact) => new URL(artifact.url).pathname);
}

function residentMegabytes({ pid }: ChildProcess): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000;
}
