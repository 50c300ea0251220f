import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime, type Runtime } from "../src/create-runtime.ts";
import type { CellSession } from "../src/cells/open-cell-session.ts";
import type { CellOutcome } from "../src/protocol/outcome.ts";
import { openExtraWheels } from "../src/sandbox/snapshot/wheels.ts";
import { openBareChart, openJupyterKernel, timeBareImport, timeBareJsonLoad } from "./baselines/bare-python.ts";
import { toBenchRow, type Baseline, type BenchRow } from "./bench-row.ts";
import { writeJsonRows } from "./json-rows.ts";
import { median } from "./median.ts";
import { measureSandboxMemory } from "./sandbox-memory.ts";

const drivers = ["gvisor", "bubblewrap"] as const;
type Driver = (typeof drivers)[number];
type PerDriver<T> = Record<Driver, T>;

/** Pause between calls, as between the calls of an agent. */
const PAUSE_MS = 50;
/** Pause after closing a sandbox, which continues in the background, so that it does not slow down the next sample. */
const SETTLE_MS = 500;
const JSON_BYTES = 100 * 1000 * 1000;

/** Compares the sandbox with what a user would use instead. Baselines and sandboxes alternate, so that a busy machine slows both. */
export async function run(): Promise<BenchRow[]> {
  const cache = cacheDirectory();
  for (const driver of drivers) await prepare(driver, cache);
  const { rootfs } = await snapshotOf(cache);
  const { rows: startRows, bareImport } = await measureStart(cache, rootfs);
  const rows = [...startRows];
  sayRows(startRows);
  for (const measure of [
    () => measurePoolHit(cache),
    () => measureWarmCell(cache, rootfs),
    () => measureFirstPicture(cache, rootfs),
    () => measureAfterError(cache, bareImport),
    () => measureManyAtOnce(cache, bareImport),
    () => measureIdleMemory(cache),
    () => measureJson(cache, rootfs),
  ]) {
    const measured = await measure();
    sayRows(measured);
    rows.push(...measured);
  }
  return rows;
}

/** Prints each figure as soon as it is measured, because the bench takes minutes. */
function sayRows(rows: readonly BenchRow[]): void {
  for (const { name, value, unit, ratio } of rows)
    say(`  ${name}: ${value.toFixed(2)} ${unit}${ratio === null ? "" : ` (${ratio.toFixed(3)})`}`);
}

function openRuntime(
  driver: Driver,
  cache: string,
  { poolSize = 0, maxSandboxes = 4 }: { poolSize?: number; maxSandboxes?: number } = {},
): Runtime {
  return createRuntime({ cacheDirectory: cache, driver, poolSize, maxSandboxes });
}

/** Runs the self-test and creates the memory image, so that they do not count as start-up. */
async function prepare(driver: Driver, cache: string): Promise<void> {
  say(`preparing ${driver}`);
  await using runtime = openRuntime(driver, cache);
  await using session = await runtime.openCellSession();
  await runOk(session, "1");
}

async function snapshotOf(cache: string): Promise<{ rootfs: string }> {
  await using runtime = openRuntime("bubblewrap", cache);
  return await runtime.snapshot();
}

/** Measures from the call, with an empty pool, until the host receives the first line of user code. */
async function measureStart(cache: string, rootfs: string): Promise<{ rows: BenchRow[]; bareImport: Baseline }> {
  say("cold start");
  const bare: number[] = [];
  const zygote: number[] = [];
  const cold: PerDriver<number[]> = { gvisor: [], bubblewrap: [] };
  await timeBareImport({ rootfs }); // loads the snapshot into the page cache
  await using gvisor = openRuntime("gvisor", cache);
  await (await gvisor.driver()).prepare({ snapshot: await gvisor.snapshot() });
  for (let round = 0; round < 5; round++) {
    bare.push(await timeBareImport({ rootfs }));
    cold.gvisor.push(await timeFirstLine(gvisor));
    await using bubblewrap = openRuntime("bubblewrap", cache);
    const driver = await bubblewrap.driver();
    const snapshot = await bubblewrap.snapshot();
    zygote.push(await time(() => driver.prepare({ snapshot })));
    for (let sample = 0; sample < 3; sample++) cold.bubblewrap.push(await timeFirstLine(bubblewrap));
  }
  const bareImport = { name: "bare import", value: median(bare) };
  return {
    bareImport,
    rows: [
      toBenchRow({ name: "gvisor: cold start to first line", value: median(cold.gvisor), unit: "ms", baseline: bareImport, target: 0.3 }),
      toBenchRow({
        name: "bubblewrap: cold start to first line",
        value: median(cold.bubblewrap),
        unit: "ms",
        baseline: bareImport,
        target: 0.03,
      }),
      toBenchRow({ name: "bubblewrap: start of the zygote", value: median(zygote), unit: "ms", baseline: bareImport }),
    ],
  };
}

async function timeFirstLine(runtime: Runtime): Promise<number> {
  await sleep(SETTLE_MS);
  const started = performance.now();
  let firstOutputAt = 0;
  await using session = await runtime.openCellSession();
  await runOk(session, "print('here')", () => (firstOutputAt ||= performance.now()));
  return firstOutputAt - started;
}

/** Measures taking a warm sandbox from the pool, until it accepts a cell and until the first line of that cell arrives. */
async function measurePoolHit(cache: string): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const driver of drivers) {
    say(`${driver}: pool hit`);
    await using runtime = openRuntime(driver, cache, { poolSize: 1 });
    const pool = await runtime.pool();
    const taken: number[] = [];
    const untilFirstLine: number[] = [];
    for (let round = 0; round < 9; round++) {
      await pool.filled();
      await sleep(SETTLE_MS);
      const started = performance.now();
      await using session = await runtime.openCellSession();
      const { sandbox } = await runOk(
        session,
        "print('here')",
        () => untilFirstLine.push(performance.now() - started),
        () => taken.push(performance.now() - started),
      );
      if (sandbox.start !== "pool") throw new Error("The sandbox did not come from the pool.");
    }
    rows.push(
      toBenchRow({ name: `${driver}: pool hit`, value: median(taken), unit: "ms", target: 5 }),
      toBenchRow({ name: `${driver}: pool hit to first line`, value: median(untilFirstLine), unit: "ms" }),
    );
  }
  return rows;
}

async function measureWarmCell(cache: string, rootfs: string): Promise<BenchRow[]> {
  say("trivial warm cell");
  const wheels = await openExtraWheels({ cacheDirectory: cache, name: "bench" });
  await using jupyter = await openJupyterKernel({ rootfs, wheels });
  await using gvisor = openRuntime("gvisor", cache, { poolSize: 1 });
  await using bubblewrap = openRuntime("bubblewrap", cache, { poolSize: 1 });
  const runtimes = { gvisor, bubblewrap };
  const kernel = async (): Promise<number> => (await jupyter.ask("run"))["ms"]!;
  const paused = await sampleWarmCells({ runtimes, kernel, first: "1", rounds: 15, pauseMs: PAUSE_MS });
  const backToBack = await sampleWarmCells({ runtimes, kernel, first: "1", rounds: 20, pauseMs: 0 });
  const afterLongCell = await sampleWarmCells({ runtimes, kernel, first: LONG_CELL, rounds: 10, pauseMs: PAUSE_MS });
  return drivers.flatMap((driver) => [
    toWarmRow({ name: `${driver}: trivial warm cell`, driver, samples: paused, target: 0.5 }),
    toWarmRow({ name: `${driver}: trivial warm cell, back to back`, driver, samples: backToBack }),
    toWarmRow({ name: `${driver}: trivial warm cell, after cells of more than half a second`, driver, samples: afterLongCell }),
  ]);
}

/** Runs for 0.7 s. After more than half a second of cells, gVisor runs each further cell in a fork instead of replaying. */
const LONG_CELL = "import time\nuntil = time.perf_counter() + 0.7\nwhile time.perf_counter() < until:\n    pass";

type WarmSamples = Record<Driver | "jupyter", number[]>;

/** Runs four turns on each driver, with as many cells as an agent uses. The Jupyter kernel and the drivers alternate cell by cell. */
async function sampleWarmCells({ runtimes, kernel, first, rounds, pauseMs }: WarmCells): Promise<WarmSamples> {
  const samples: WarmSamples = { jupyter: [], gvisor: [], bubblewrap: [] };
  for (let turn = 0; turn < 4; turn++) {
    for (const driver of drivers) await (await runtimes[driver].pool()).filled();
    await using gvisor = await runtimes.gvisor.openCellSession();
    await using bubblewrap = await runtimes.bubblewrap.openCellSession();
    for (const driver of drivers) await (await runtimes[driver].pool()).filled(); // the refill must not run during the cells
    const runners: Record<keyof WarmSamples, () => Promise<number>> = {
      jupyter: kernel,
      gvisor: () => time(() => runOk(gvisor, "1 + 1")),
      bubblewrap: () => time(() => runOk(bubblewrap, "1 + 1")),
    };
    for (const session of [gvisor, bubblewrap]) await runOk(session, first);
    const names = Object.keys(runners) as (keyof typeof runners)[];
    for (const name of names) for (let round = 0; round < 5; round++) await runners[name]();
    await sleep(SETTLE_MS);
    if (pauseMs === 0) for (const name of names) for (let round = 0; round < rounds; round++) samples[name].push(await runners[name]());
    else
      for (let round = 0; round < rounds; round++) {
        for (const name of names) {
          await sleep(pauseMs);
          samples[name].push(await runners[name]());
        }
      }
  }
  return samples;
}

interface WarmCells {
  readonly runtimes: PerDriver<Runtime>;
  readonly kernel: () => Promise<number>;
  readonly first: string;
  readonly rounds: number;
  readonly pauseMs: number;
}

function toWarmRow({ name, driver, samples, target }: { name: string; driver: Driver; samples: WarmSamples; target?: number }): BenchRow {
  const baseline = { name: "Jupyter kernel", value: median(samples.jupyter) };
  return toBenchRow({ name, value: median(samples[driver]), unit: "ms", baseline, target });
}

/** Measures the cell right after one that raised an exception, which must find the old variables: with an empty pool (the worst case) and with the default pool. */
async function measureAfterError(cache: string, bareImport: Baseline): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const driver of drivers) {
    for (const poolSize of [0, 1]) {
      say(`${driver}: after a cell that raised, pool of ${poolSize}`);
      await using runtime = openRuntime(driver, cache, { poolSize });
      const samples: number[] = [];
      for (let round = 0; round < 5; round++) {
        await using session = await runtime.openCellSession();
        await runOk(session, "kept = 41");
        await (await runtime.pool()).filled();
        await sleep(SETTLE_MS);
        const { status } = await session.run({ code: "kept = 0\nraise ValueError('as planned')" });
        if (status !== "python_error") throw new Error(`The cell that raises ended as ${status}.`);
        let result: string | null = null;
        samples.push(await time(async () => ({ resultJson: result } = await runOk(session, "kept + 1"))));
        if (result !== "42") throw new Error(`The variables were not restored: ${String(result)}.`);
      }
      const value = median(samples);
      const name = `${driver}: cell after one that raised`;
      if (poolSize === 1) rows.push(toBenchRow({ name: `${name}, pool of 1`, value, unit: "ms" }));
      else if (driver === "gvisor") rows.push(toBenchRow({ name, value, unit: "ms", baseline: bareImport, target: 0.5 }));
      else rows.push(toBenchRow({ name, value, unit: "ms", target: 30 }));
    }
  }
  return rows;
}

async function measureManyAtOnce(cache: string, bareImport: Baseline): Promise<BenchRow[]> {
  say("bubblewrap: 100 at once");
  const count = 100;
  const samples: number[] = [];
  let failed = 0;
  for (let round = 0; round < 3; round++) {
    await using fresh = openRuntime("bubblewrap", cache, { maxSandboxes: count });
    await (await fresh.driver()).prepare({ snapshot: await fresh.snapshot() });
    const sessions = await Promise.all(Array.from({ length: count }, () => fresh.openCellSession()));
    await sleep(SETTLE_MS);
    samples.push(
      await time(async () => {
        const outcomes = await Promise.allSettled(sessions.map((session, index) => session.run({ code: `print(${index})` })));
        failed += outcomes.filter((one, index) => one.status === "rejected" || one.value.stdout !== `${index}\n`).length;
      }),
    );
  }
  return [
    toBenchRow({
      name: "bubblewrap: 100 sandboxes at once",
      value: median(samples),
      unit: "ms",
      baseline: bareImport,
      target: 2.5,
      holds: failed === 0,
    }),
    toBenchRow({ name: "bubblewrap: failed of 300 sandboxes", value: failed, unit: "", target: 0 }),
  ];
}

/** Measures the memory of sandboxes that wait in a pool. */
async function measureIdleMemory(cache: string): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const [driver, count, target] of [
    ["bubblewrap", 100, 5],
    ["gvisor", 8, 190],
  ] as const) {
    say(`${driver}: idle memory of ${count}`);
    await using runtime = openRuntime(driver, cache, { poolSize: count, maxSandboxes: count });
    const pool = await runtime.pool();
    await pool.filled();
    if (pool.warm !== count) throw new Error(`Only ${pool.warm} of ${count} sandboxes started.`);
    await sleep(2_000);
    const { privateMb, proportionalMb } = await measureSandboxMemory(driver);
    rows.push(toBenchRow({ name: `${driver}: idle private memory, mean of ${count}`, value: privateMb / count, unit: "MB", target }));
    rows.push(toBenchRow({ name: `${driver}: idle proportional memory, mean of ${count}`, value: proportionalMb / count, unit: "MB" }));
  }
  return rows;
}

async function measureJson(cache: string, rootfs: string): Promise<BenchRow[]> {
  say("100 MB of JSON rows");
  const directory = await mkdtemp(path.join(os.tmpdir(), "sluice-bench-"));
  try {
    const file = path.join(directory, "rows.json");
    await writeJsonRows({ file, bytes: JSON_BYTES });
    const bytes = await readFile(file);
    const bare: number[] = [];
    const first: PerDriver<number[]> = { gvisor: [], bubblewrap: [] };
    const again: PerDriver<number[]> = { gvisor: [], bubblewrap: [] };
    await using gvisor = openRuntime("gvisor", cache, { poolSize: 1 });
    await using bubblewrap = openRuntime("bubblewrap", cache, { poolSize: 1 });
    for (let round = 0; round < 3; round++) {
      bare.push(await timeBareJsonLoad({ rootfs, file }));
      for (const [driver, runtime] of [
        ["gvisor", gvisor],
        ["bubblewrap", bubblewrap],
      ] as const) {
        await (await runtime.pool()).filled();
        await sleep(SETTLE_MS);
        await using session = await runtime.openCellSession();
        first[driver].push(
          await time(async () => {
            session.bind("rows", { format: "json", bytes });
            await runOk(session, "len(rows)");
          }),
        );
        for (let cell = 0; cell < 3; cell++) {
          await sleep(SETTLE_MS);
          again[driver].push(await time(() => runOk(session, "rows[-1]['price'] + len(rows)")));
        }
      }
    }
    const baseline = { name: "bare json.load", value: median(bare) };
    return drivers.flatMap((driver) => [
      toBenchRow({
        name: `${driver}: 100 MB of JSON bound and parsed`,
        value: median(first[driver]),
        unit: "ms",
        baseline,
        target: driver === "gvisor" ? 2.6 : 1.5,
      }),
      toBenchRow({ name: `${driver}: the same rows in a later cell`, value: median(again[driver]), unit: "ms", baseline, target: 0.02 }),
    ]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The same chart as baselines/line_chart.py. */
const chartCode = `
figure, axes = plt.subplots()
axes.plot([1, 2, 3, 4, 5, 6], [3, 1, 4, 1, 5, 9])
axes.set_title("Six points")
axes.set_xlabel("step")
axes.set_ylabel("value")
save_figure("Six points that rise from 3 to 9")
`;

async function measureFirstPicture(cache: string, rootfs: string): Promise<BenchRow[]> {
  say("first picture");
  const bare: number[] = [];
  const first: PerDriver<number[]> = { gvisor: [], bubblewrap: [] };
  await using chart = await openBareChart({ rootfs });
  await using gvisor = openRuntime("gvisor", cache, { poolSize: 1 });
  await using bubblewrap = openRuntime("bubblewrap", cache, { poolSize: 1 });
  for (let round = 0; round < 15; round++) {
    for (let draw = 0; draw < 3; draw++) bare.push((await chart.ask("draw"))["ms"]!);
    for (const [driver, runtime] of [
      ["gvisor", gvisor],
      ["bubblewrap", bubblewrap],
    ] as const) {
      for (const one of [gvisor, bubblewrap]) await (await one.pool()).filled(); // no refill may run during the cell
      await sleep(SETTLE_MS);
      await using session = await runtime.openCellSession();
      first[driver].push(
        await time(async () => {
          const { artifacts } = await runOk(session, chartCode);
          if (artifacts.length !== 1) throw new Error("The cell returned no figure.");
        }),
      );
    }
  }
  const baseline = { name: "bare warm matplotlib", value: median(bare) };
  return drivers.map((driver) =>
    toBenchRow({
      name: `${driver}: first picture from the pool`,
      value: median(first[driver]),
      unit: "ms",
      baseline,
      target: driver === "gvisor" ? 1.6 : 1.3,
    }),
  );
}

async function runOk(session: CellSession, code: string, onOutput?: () => void, onStart?: () => void): Promise<CellOutcome> {
  const outcome = await session.run({ code, onOutput, onStart });
  if (outcome.status !== "ok") throw new Error(`A cell of the bench ended as ${outcome.status}: ${outcome.error?.message ?? ""}`);
  return outcome;
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function say(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}
