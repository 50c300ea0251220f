/** What it costs to keep and preview a large output, against parsing it, which nobody can do without. */
import { setImmediate as afterImmediates } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { largeOutputs } from "./large-outputs.ts";
import { median } from "./median.ts";

const BYTES = 50_000_000;
const ROUNDS = 7;
/** What is quick goes on until so much time was measured: a median of seven times of 30 ms is off by a tenth where something else runs on the machine. */
const MEASURED_MS = 3000;
const TARGET = 2;

/**
 * Until the preview is there, with the exact size of what was kept; without the hash, which is made when it is asked for, and without encoding long text as UTF-8, which is done right
 * afterwards. Rounds alternate, so that both sides meet the same machine, and each starts from a collected heap: otherwise each pays for the garbage of the other.
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
  for (const beside of besideTexts(largeOutputs[0]!.create(BYTES)))
    rows.push(await measure({ baseline: "JSON.parse", ...beside, collect }));
  return rows;
}

/** Structured content and the texts that servers send beside it: a line about it, or all of it again. */
function besideTexts(list: string): Pick<Measured, "name" | "work" | "output" | "structuredJson">[] {
  const [wrapped, counted] = [`{"result":${list}}`, `{"rows":${list},"total":1}`];
  const about = "Found some rows.";
  const again = JSON.stringify(JSON.parse(counted), null, 1);
  return [
    { name: "preview of 50 MB of a wrapped list beside a line of text", structuredJson: wrapped, text: about, sent: [wrapped] },
    { name: "preview of 50 MB of structured content beside a line of text", structuredJson: counted, text: about, sent: [counted] },
    {
      name: "preview of 50 MB of structured content beside the same as text",
      structuredJson: counted,
      text: again,
      sent: [counted, again],
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
  /** What nobody can do without. */
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
    await afterImmediates(); // what the last round left to do
    collect();
    const worked = time(work);
    collect();
    const previewed = time(() => {
      const store = createEvidenceStore();
      const { alias } = store.add({ tool: "get_prices", output, ...(structuredJson && { structuredJson, as: "mcp" as const }) });
      fits &&= store.preview(alias).bytes <= 4096;
    });
    if (round === 0) continue; // the first one warms up
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
