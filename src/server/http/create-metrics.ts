import type { Limiter } from "../../concurrency/create-limiter.ts";
import { parseProbe, type ProbeValue } from "../../protocol/probe.ts";
import type { TurnEvent } from "../../protocol/turn-events.ts";
import type { SandboxPool } from "../../sandbox/pool.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const KEPT_PROBES = 200;
const KEPT_SANDBOXES = 1000;
const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export interface MetricsOptions {
  readonly gate: Limiter;
  readonly pool: () => SandboxPool | null;
  readonly turns: Limiter;
}

/** What this server has done since it began. Counts only: nothing of what anybody asked. */
export function createMetrics({ gate, pool, turns }: MetricsOptions) {
  const registry = createRegistry();
  const { counter, gauge } = registry;
  const histogram = (name: string, help: string): Histogram => registry.histogram(name, help, seconds);
  const probes: { at: string; line: string }[] = [];
  const seenSandboxes = new Set<string>();

  const metrics = {
    cells: counter("sluice_cells_total", "Cells that ran, by how they ended."),
    starts: counter("sluice_sandbox_starts_total", "Sandboxes that cells began in, by where they came from."),
    boots: counter("sluice_cell_boots_total", "Cells by whether their sandbox was warm."),
    calls: counter("sluice_calls_total", "Calls of the model, by tool and by how they ended."),
    turns: counter("sluice_turns_total", "Turns, by what ended them."),
    artifacts: counter("sluice_artifacts_total", "Artifacts that were kept, by kind."),
    artifactBytes: counter("sluice_artifact_bytes_total", "Their bytes, by kind."),
    requests: counter("sluice_http_requests_total", "HTTP requests, by route, method and status."),
    slowClients: counter("sluice_slow_clients_total", "Connections that were cut because nobody read them."),
    cellRun: histogram("sluice_cell_run_seconds", "How long cells ran."),
    cellStart: histogram("sluice_cell_start_seconds", "How long cells waited for a sandbox to start."),
    turn: histogram("sluice_turn_seconds", "How long turns took."),
    http: histogram("sluice_http_request_seconds", "How long requests took until their answer began."),
  };
  gauge("sluice_sandboxes_alive", "Sandboxes that exist now, warm ones included.", () => gate.taken);
  gauge("sluice_sandbox_places", "Sandboxes that may exist at once.", () => gate.places);
  gauge("sluice_sandboxes_waited_for", "Callers that wait for a sandbox.", () => gate.waiting);
  gauge("sluice_pool_warm", "Sandboxes that wait warm.", () => pool()?.warm ?? 0);
  gauge("sluice_turns_running", "Turns that run now.", () => turns.taken);
  gauge("sluice_turns_queued", "Turns that wait in line.", () => turns.waiting);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());

  function readCell(fields: Record<string, ProbeValue>): void {
    const { event, stage, status, start, boot, sandboxId, runMs, startMs, totalMs } = fields;
    if (event !== "python_call_success" && event !== "python_call_failure") return;
    if (stage === "contract" || stage === "queue") return; // no cell came of it
    metrics.cells.add(1, { status: event === "python_call_success" ? "ok" : String(status) });
    if (typeof runMs === "number") metrics.cellRun.observe(runMs / 1000);
    if (typeof boot === "string") metrics.boots.add(1, { boot });
    if (typeof sandboxId !== "string" || typeof start !== "string" || typeof totalMs !== "number" || seenSandboxes.has(sandboxId)) return;
    seenSandboxes.add(sandboxId);
    if (seenSandboxes.size > KEPT_SANDBOXES) seenSandboxes.delete(seenSandboxes.values().next().value!);
    metrics.starts.add(1, { start });
    if (typeof startMs === "number") metrics.cellStart.observe(startMs / 1000);
  }

  return {
    ...metrics,
    /** The last 200 probe lines, oldest first. */
    probes: probes as readonly { readonly at: string; readonly line: string }[],
    probe(line: string): void {
      probes.push({ at: new Date().toISOString(), line });
      if (probes.length > KEPT_PROBES) probes.shift();
      const parsed = parseProbe(line);
      if (parsed?.source === "python-sandbox-latency-probe") readCell(parsed.fields);
    },
    onTurnEvent(event: TurnEvent): void {
      if (event.type === "tool-end") metrics.calls.add(1, { tool: toolLabel(event), status: event.status });
      if (event.type !== "turn-end") return;
      metrics.turns.add(1, { stop_reason: event.result.outcome.stopReason });
      metrics.turn.observe(event.result.usage.wallMs / 1000);
    },
    toText: (): string => registry.toText(),
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

/** Names that a model made up would be labels without end. */
function toolLabel({ tool, server }: { tool: string; server?: string | undefined }): string {
  if (ownTools.has(tool)) return tool;
  return server === undefined ? "other" : `${server}__*`;
}

type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount?: number, labels?: Labels): void;
  /** By the values of its labels, joined by a comma where there are several. */
  values(): Record<string, number>;
}

export interface Histogram {
  observe(value: number): void;
  read(): HistogramReading;
}

export interface HistogramReading {
  readonly count: number;
  readonly sum: number;
  /** Cumulative; the last bound is infinite. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** Numbers of this process, as Prometheus reads them: the text format 0.0.4. */
export function createRegistry() {
  const families: (() => string)[] = [];
  const family = (name: string, help: string, type: string, lines: () => string[]): void => {
    families.push(() => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines(), ""].join("\n"));
  };

  return {
    counter(name: string, help: string): Counter {
      const series = new Map<string, { labels: Labels; value: number }>();
      family(name, help, "counter", () =>
        series.size === 0 ? [`${name} 0`] : [...series.values()].map(({ labels, value }) => `${name}${toLabels(labels)} ${value}`),
      );
      return {
        add(amount = 1, labels = {}) {
          const key = JSON.stringify(labels);
          const found = series.get(key);
          if (found === undefined) series.set(key, { labels, value: amount });
          else found.value += amount;
        },
        values: () => Object.fromEntries([...series.values()].map(({ labels, value }) => [Object.values(labels).join(","), value])),
      };
    },
    histogram(name: string, help: string, bounds: readonly number[]): Histogram {
      const counts = Array.from({ length: bounds.length + 1 }, () => 0);
      let sum = 0;
      const read = (): HistogramReading => {
        let count = 0;
        const buckets = [...bounds, Infinity].map((le, index) => ({ le, count: (count += counts[index]!) }));
        return { count, sum, buckets };
      };
      family(name, help, "histogram", () => {
        const { count, buckets } = read();
        const lines = buckets.map(({ le, count: below }) => `${name}_bucket{le="${le === Infinity ? "+Inf" : le}"} ${below}`);
        return [...lines, `${name}_sum ${sum}`, `${name}_count ${count}`];
      });
      return {
        observe(value) {
          const at = bounds.findIndex((bound) => value <= bound);
          counts[at === -1 ? bounds.length : at]! += 1;
          sum += value;
        },
        read,
      };
    },
    /** Read when somebody asks. */
    gauge: (name: string, help: string, read: () => number): void => family(name, help, "gauge", () => [`${name} ${read()}`]),
    toText: (): string => families.map((write) => write()).join(""),
  };
}

function toLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
