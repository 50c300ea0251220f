import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Limiter } from "../../concurrency/create-limiter.ts";
import { parseProbe, type ProbeValue } from "../../protocol/probe.ts";
import type { TurnEvent } from "../../protocol/turn-events.ts";
import type { SandboxPool } from "../../sandbox/pool.ts";
import type { Log } from "./create-log.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const MAX_PROBES = 200;
const MAX_KNOWN_SANDBOXES = 1000;
const histogramBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export interface MetricsOptions {
  readonly sandboxLimiter: Limiter;
  readonly pool: () => SandboxPool | null;
  readonly turnLimiter: Limiter;
  /** Gets every probe as an event, at level `info`. */
  readonly log: Log;
}

/** Counts what the server has done since it started. Holds no questions, answers or data. */
export function createMetrics(options: MetricsOptions) {
  const registry = createRegistry();
  const counts = registerCounts(registry);
  registerGauges(registry, options);
  const recordCell = createCellRecorder(counts);
  const probes: { at: string; line: string }[] = [];
  return {
    ...counts,
    /** The last 200 probe lines, oldest first. */
    probes: probes as readonly { readonly at: string; readonly line: string }[],
    onProbe(line: string): void {
      probes.push({ at: new Date().toISOString(), line });
      if (probes.length > MAX_PROBES) probes.shift();
      const parsed = parseProbe(line);
      if (parsed === null) return;
      if (parsed.source === "python-sandbox-latency-probe") recordCell(parsed.fields);
      const { event, ...fields } = parsed.fields;
      options.log.info(String(event), { probe: parsed.source, ...fields });
    },
    onTurnEvent(event: TurnEvent): void {
      if (event.type === "tool-end") counts.calls.add(1, { tool: toToolLabel(event), status: event.status });
      if (event.type !== "turn-end") return;
      counts.turns.add(1, { stop_reason: event.result.outcome.stopReason });
      counts.turn.observe(event.result.usage.wallMs / 1000);
    },
    toText: (): string => registry.toText(),
  };
}

type Counts = ReturnType<typeof registerCounts>;

function registerCounts({ counter, histogram }: Registry) {
  return {
    cells: counter("sluice_cells_total", "Cells that ran, by status."),
    starts: counter("sluice_sandbox_starts_total", "Sandboxes that ran a first cell, by how they were started."),
    boots: counter("sluice_cell_boots_total", "Cells, by whether their sandbox was warm."),
    calls: counter("sluice_calls_total", "Tool calls of the model, by tool and status."),
    turns: counter("sluice_turns_total", "Turns, by stop reason."),
    artifacts: counter("sluice_artifacts_total", "Stored artifacts, by kind."),
    artifactBytes: counter("sluice_artifact_bytes_total", "Bytes of stored artifacts, by kind."),
    requests: counter("sluice_http_requests_total", "HTTP requests, by route, method and status."),
    connectionsCut: counter(
      "sluice_connections_cut_total",
      "Connections closed because there were too many without a valid token, or of one tenant.",
    ),
    slowClients: counter("sluice_slow_clients_total", "Connections closed because the client was too slow."),
    cellRun: histogram("sluice_cell_run_seconds", "Run time of cells.", histogramBounds),
    cellStart: histogram("sluice_cell_start_seconds", "Time that cells waited for their sandbox to start.", histogramBounds),
    turn: histogram("sluice_turn_seconds", "Duration of turns.", histogramBounds),
    http: histogram("sluice_http_request_seconds", "Time until the response began.", histogramBounds),
  };
}

function registerGauges({ gauge }: Registry, { sandboxLimiter, pool, turnLimiter }: MetricsOptions): void {
  gauge("sluice_sandboxes_alive", "Existing sandboxes, including warm ones.", () => sandboxLimiter.taken);
  gauge("sluice_sandbox_places", "Maximum number of sandboxes.", () => sandboxLimiter.places);
  gauge("sluice_sandboxes_waited_for", "Callers that wait for a sandbox.", () => sandboxLimiter.waiting);
  gauge("sluice_pool_warm", "Warm sandboxes in the pool.", () => pool()?.warm ?? 0);
  gauge("sluice_turns_running", "Running turns.", () => turnLimiter.taken);
  gauge("sluice_turns_queued", "Queued turns.", () => turnLimiter.waiting);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge("sluice_event_loop_block_seconds", "Longest block of the event loop since the metrics were last read.", createBlockReader());
}

const BLOCK_RESOLUTION_MS = 10;

/** Returns the seconds of the longest block since the last call. A block of the loop is a delay of the timer that measures it. */
export function createBlockReader(): () => number {
  const delays = monitorEventLoopDelay({ resolution: BLOCK_RESOLUTION_MS });
  delays.enable();
  return () => {
    const longestMs = delays.max / 1e6; // between two ticks of the timer, which are BLOCK_RESOLUTION_MS apart when nothing blocks
    delays.reset();
    return Math.max(0, longestMs - BLOCK_RESOLUTION_MS) / 1000;
  };
}

/** Counts cells from their latency probes. The start of a sandbox counts with its first cell. */
function createCellRecorder(counts: Counts): (fields: Record<string, ProbeValue>) => void {
  const knownSandboxes = new Set<string>();
  return ({ event, stage, status, start, boot, sandboxId, runMs, startMs, totalMs }) => {
    if (event !== "python_call_success" && event !== "python_call_failure") return;
    if (stage === "contract" || stage === "queue") return; // the call ended before a cell ran
    counts.cells.add(1, { status: event === "python_call_success" ? "ok" : String(status) });
    if (typeof runMs === "number") counts.cellRun.observe(runMs / 1000);
    if (typeof boot === "string") counts.boots.add(1, { boot });
    if (typeof sandboxId !== "string" || typeof start !== "string" || typeof totalMs !== "number" || knownSandboxes.has(sandboxId)) return;
    knownSandboxes.add(sandboxId);
    if (knownSandboxes.size > MAX_KNOWN_SANDBOXES) knownSandboxes.delete(knownSandboxes.values().next().value!);
    counts.starts.add(1, { start });
    if (typeof startMs === "number") counts.cellStart.observe(startMs / 1000);
  };
}

const ownTools: ReadonlySet<string> = new Set([
  "code_interpreter",
  "python_code_edit",
  "render_chart",
  "execute",
  "final_response",
  "call_mcp_skill",
]);

/** Keeps the number of labels small: a model can make up any tool name. */
function toToolLabel({ tool, server }: { tool: string; server?: string | undefined }): string {
  if (ownTools.has(tool)) return tool;
  return server === undefined ? "other" : `${server}__*`;
}

type Labels = Readonly<Record<string, string>>;

export type Histogram = ReturnType<typeof createHistogram>;

export interface HistogramReading {
  readonly count: number;
  readonly sum: number;
  /** Cumulative; the last bound is infinite. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

type Registry = ReturnType<typeof createRegistry>;

/** Counters, histograms and gauges in the Prometheus text format 0.0.4. */
export function createRegistry() {
  const families: (() => string)[] = [];
  const register = (name: string, help: string, type: string, toLines: () => string[]): void => {
    families.push(() => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...toLines(), ""].join("\n"));
  };
  return {
    counter(name: string, help: string) {
      const counter = createCounter(name);
      register(name, help, "counter", counter.toLines);
      return counter;
    },
    histogram(name: string, help: string, bounds: readonly number[]): Histogram {
      const histogram = createHistogram(name, bounds);
      register(name, help, "histogram", histogram.toLines);
      return histogram;
    },
    /** `read` is called whenever the metrics are read. */
    gauge: (name: string, help: string, read: () => number): void => register(name, help, "gauge", () => [`${name} ${read()}`]),
    toText: (): string => families.map((toText) => toText()).join(""),
  };
}

function createCounter(name: string) {
  const series = new Map<string, { labels: Labels; value: number }>();
  return {
    add(amount = 1, labels: Labels = {}): void {
      const key = JSON.stringify(labels);
      const found = series.get(key);
      if (found === undefined) series.set(key, { labels, value: amount });
      else found.value += amount;
    },
    /** By the values of the labels, joined with commas. */
    values: (): Record<string, number> =>
      Object.fromEntries([...series.values()].map(({ labels, value }) => [Object.values(labels).join(","), value])),
    toLines: (): string[] =>
      series.size === 0 ? [`${name} 0`] : [...series.values()].map(({ labels, value }) => `${name}${toLabelText(labels)} ${value}`),
  };
}

function createHistogram(name: string, bounds: readonly number[]) {
  const counts = Array.from({ length: bounds.length + 1 }, () => 0);
  let sum = 0;
  const read = (): HistogramReading => {
    let count = 0;
    const buckets = [...bounds, Infinity].map((le, index) => ({ le, count: (count += counts[index]!) }));
    return { count, sum, buckets };
  };
  return {
    observe(value: number): void {
      const index = bounds.findIndex((bound) => value <= bound);
      counts[index === -1 ? bounds.length : index]! += 1;
      sum += value;
    },
    read,
    toLines(): string[] {
      const { count, buckets } = read();
      const lines = buckets.map(({ le, count: below }) => `${name}_bucket{le="${le === Infinity ? "+Inf" : le}"} ${below}`);
      return [...lines, `${name}_sum ${sum}`, `${name}_count ${count}`];
    },
  };
}

function toLabelText(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
