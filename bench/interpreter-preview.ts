/** The cost of storing and previewing a large output, compared with parsing it, which is the minimum. */
import { setImmediate as afterImmediates } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { largeOutputs } from "./large-outputs.ts";
import { median } from "./median.ts";

const BYTES = 50_000_000;
const ROUNDS = 7;
/** Minimum total time to measure. On a busy machine, the median of only seven runs of 30 ms would be off by 10 %. */
const MEASURED_MS = 3000;
const TARGET = 2;

/**
 * Measures until the preview and the exact size are available. Excludes the hash, which is computed on demand, and encoding long text as UTF-8, which happens right afterwards. Rounds
 * alternate, so that both sides run under the same load, and each starts with a collected heap, so that neither pays for the garbage of the other.
 */
export async function measurePreview(): Promise<BenchRow[]> {
  const collect = exposeCollector();
  const rows: BenchRow[] = [];
  for (const { name, create } of largeOutputs) {
    const text = create(BYTES);
    const asText = { work: () => JSON.parse(text) as unknown, output: { content: [{ type: "text", text }] } };
    rows.push(await measure({ name, baseline: "JSON.parse", ...asText, collect }));
  }
  const value: unknown = JSON.parse(largeOutputs[0]!.create(BYTES));
  const asValue = { work: () => JSON.stringify(value), output: value };
  rows.push(await measure({ name: "preview of 50 MB that came parsed", baseline: "JSON.stringify", ...asValue, collect }));
  for (const output of structuredOutputs(largeOutputs[0]!.create(BYTES)))
    rows.push(await measure({ baseline: "JSON.parse", ...output, collect }));
  return rows;
}

/** Structured content together with the text that servers send: a short summary, or the same content again. */
function structuredOutputs(list: string): Pick<Measured, "name" | "work" | "output" | "structuredJson">[] {
  const [wrapped, counted] = [`{"result":${list}}`, `{"rows":${list},"total":1}`];
  const summary = "Found some rows.";
  const sameAsText = JSON.stringify(JSON.parse(counted), null, 1);
  return [
    { name: "preview of 50 MB of a wrapped list beside a line of text", structuredJson: wrapped, text: summary, sent: [wrapped] },
    { name: "preview of 50 MB of structured content beside a line of text", structuredJson: counted, text: summary, sent: [counted] },
    {
      name: "preview of 50 MB of structured content beside the same as text",
      structuredJson: counted,
      text: sameAsText,
      sent: [counted, sameAsText],
    },
  ].map(({ sent, text, ...row }) => ({
    ...row,
    work: () => sent.map((json) => JSON.parse(json) as unknown),
    output: { content: [{ type: "text", text }] },
  }));
}

interface Measured {
  readonly name: string;
  readonly baseline: string;
  /** The minimum that any implementation has to do. */
  readonly work: () => unknown;
  readonly output: unknown;
  readonly structuredJson?: string;
  readonly collect: () => void;
}

async function measure({ name, baseline, work, output, structuredJson, collect }: Measured): Promise<BenchRow> {
  const working: number[] = [];
  const previewing: number[] = [];
  let fits = true;
  let measuredMs = 0;
  for (let round = 0; round <= ROUNDS || measuredMs < MEASURED_MS; round++) {
    await afterImmediates(); // finish the background work of the last round
    collect();
    const worked = time(work);
    collect();
    const previewed = time(() => {
      const store = createEvidenceStore();
      const { alias } = store.add({ tool: "get_prices", output, ...(structuredJson && { structuredJson, as: "mcp" as const }) });
      fits &&= store.preview(alias).bytes <= 4096;
    });
    if (round === 0) continue; // the first round is a warm-up
    measuredMs += worked + previewed;
    working.push(worked);
    previewing.push(previewed);
  }
  return toBenchRow({
    name,
    value: median(previewing),
    unit: "ms",
    baseline: { name: baseline, value: median(working) },
    target: TARGET,
    holds: fits,
  });
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
