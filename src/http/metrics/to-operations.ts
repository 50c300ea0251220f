import type { Latency, Operations } from "../../protocol/http-operations.ts";
import type { ServerParts } from "../server-parts.ts";
import type { Histogram, HistogramReading } from "./create-registry.ts";

/** The same numbers as `/metrics`, in the shape that a page draws. */
export async function toOperations({ configured, metrics, gate, startedAt, version, selfTest }: ServerParts): Promise<Operations> {
  const { runtime, configuration } = configured;
  const pool = await runtime.pool().catch(() => null);
  const snapshot = await runtime.snapshot().catch(() => null);
  const starts = metrics.starts.values();
  const byStatus = metrics.cells.values();
  const byStop = metrics.turns.values();
  const bytes = metrics.artifactBytes.values();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    schemaVersion: 1,
    at: new Date().toISOString(),
    startedAt,
    version,
    driver: pool?.driver.name ?? null,
    snapshot: snapshot?.id ?? null,
    sandboxes: { places: runtime.gate.places, alive: runtime.gate.taken, waiting: runtime.gate.waiting },
    pool: { warm: pool?.warm ?? 0, size: configuration.sandbox.poolSize },
    starts: { pool: starts["pool"] ?? 0, restored: starts["restored"] ?? 0, forked: starts["forked"] ?? 0, cold: starts["cold"] ?? 0 },
    cells: { total: sum(byStatus), byStatus },
    turns: { running: gate.running, queued: gate.queued, total: sum(byStop), byStop },
    latencies: {
      cellRun: toLatency(metrics.cellRun),
      cellStart: toLatency(metrics.cellStart),
      turn: toLatency(metrics.turn),
      http: toLatency(metrics.http),
    },
    failures: failuresOf(byStatus, byStop),
    artifacts: Object.entries(metrics.artifacts.values()).map(([kind, count]) => ({ kind, count, bytes: bytes[kind] ?? 0 })),
    probes: [...metrics.probes],
    selfTest,
    memory: { rssBytes: rss, heapBytes: heapUsed },
  };
}

function failuresOf(cells: Readonly<Record<string, number>>, turns: Readonly<Record<string, number>>): Operations["failures"] {
  const failed = [
    ...Object.entries(cells).filter(([status]) => status !== "ok"),
    ...Object.entries(turns).filter(([stop]) => stop !== "complete_answer"),
  ];
  return failed.map(([cause, count]) => ({ cause, count })).sort((a, b) => b.count - a.count);
}

function toLatency(histogram: Histogram): Latency {
  const reading = histogram.read();
  return {
    count: reading.count,
    sumMs: reading.sum * 1000,
    buckets: reading.buckets.map(({ le, count }) => ({ le: le === Infinity ? null : le * 1000, count })),
    p50Ms: quantile(reading, 0.5),
    p95Ms: quantile(reading, 0.95),
  };
}

/** As Prometheus guesses it: even within a bucket. The last bucket has no end, so its beginning stands for it. */
function quantile({ count, buckets }: HistogramReading, share: number): number | null {
  if (count === 0) return null;
  const rank = share * count;
  const at = buckets.findIndex((bucket) => bucket.count >= rank);
  const [low, below] = at <= 0 ? [0, 0] : [buckets[at - 1]!.le, buckets[at - 1]!.count];
  const { le, count: upTo } = buckets[at]!;
  if (le === Infinity) return low * 1000;
  return 1000 * (low + (le - low) * ((rank - below) / Math.max(1, upTo - below)));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
