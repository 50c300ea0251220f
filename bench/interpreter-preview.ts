/** What it costs to keep and preview a large output, against parsing it, which nobody can do without. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const BYTES = 50_000_000;
const ROUNDS = 7;
const TARGET = 1.5;

/**
 * Includes keeping the output as bytes, without the hash, which is made when it is asked for. Rounds alternate, so that both sides meet the same machine, and each starts from a
 * collected heap: otherwise each pays for the garbage of the other.
 */
export function measurePreview(): BenchRow[] {
  const text = createRows(BYTES);
  const parsing: number[] = [];
  const previewing: number[] = [];
  const collect = exposeCollector();
  let fits = true;
  for (let round = 0; round <= ROUNDS; round++) {
    collect();
    const parse = time(() => JSON.parse(text));
    collect();
    const preview = time(() => {
      const store = createEvidenceStore();
      const { alias } = store.add({ tool: "get_prices", output: { content: [{ type: "text", text }] } });
      fits &&= store.preview(alias).bytes <= 4096;
    });
    if (round === 0) continue; // the first one warms up
    parsing.push(parse);
    previewing.push(preview);
  }
  const baseline = { name: "JSON.parse", value: median(parsing) };
  return [toBenchRow({ name: "preview of 50 MB", value: median(previewing), unit: "ms", baseline, target: TARGET, holds: fits })];
}

function time(work: () => unknown): number {
  const started = performance.now();
  work();
  return performance.now() - started;
}

function exposeCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

function createRows(bytes: number): string {
  const rows: string[] = [];
  for (let id = 0, written = 2; written < bytes; id++) {
    const row = JSON.stringify({
      id,
      symbol: ["BTC", "ETH", "SOL", "XRP"][id % 4],
      at: new Date(1_700_000_000_000 + id * 60_000).toISOString(),
      price: Math.round(4_000_000 + 1_000_000 * Math.sin(id / 500)) / 100,
      volume: id % 11 === 0 ? null : (id * 7919) % 100_003,
      side: id % 3 === 0 ? "sell" : "buy",
      settled: id % 5 !== 0,
    });
    rows.push(row);
    written += row.length + 1;
  }
  return `[${rows.join(",")}]`;
}
