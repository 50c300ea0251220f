import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import type { Latency, Operations } from "../../src/protocol/http-operations.ts";
import { texts } from "../texts.ts";

export interface OpsChart {
  readonly title: string;
  readonly spec: ChartSpec;
  readonly data: ChartRow[];
}

/** Line charts of the last minutes. */
export function toTimelines(history: readonly Operations[]): OpsChart[] {
  const xAxis = { type: "time" } as const;
  return [
    {
      title: texts.ops.sandboxes,
      spec: {
        type: "line",
        xKey: "at",
        xAxis,
        series: [
          { key: "alive", label: texts.ops.alive },
          { key: "warm", label: texts.ops.warm },
          { key: "waiting", label: texts.ops.waiting },
        ],
      },
      data: history.map(({ at, sandboxes, pool }) => ({ at, alive: sandboxes.alive, warm: pool.warm, waiting: sandboxes.waiting })),
    },
    {
      title: texts.ops.turns,
      spec: {
        type: "line",
        xKey: "at",
        xAxis,
        series: [
          { key: "running", label: texts.ops.running },
          { key: "queued", label: texts.ops.queued },
        ],
      },
      data: history.map(({ at, turns }) => ({ at, running: turns.running, queued: turns.queued })),
    },
    {
      title: texts.ops.memory,
      spec: {
        type: "area",
        xKey: "at",
        xAxis,
        yAxis: { label: texts.ops.memoryUnit },
        series: [
          { key: "rss", label: texts.ops.memoryKinds.rss },
          { key: "heap", label: texts.ops.memoryKinds.heap },
        ],
      },
      data: history.map(({ at, memory }) => ({ at, rss: memory.rssBytes / 1e6, heap: memory.heapBytes / 1e6 })),
    },
  ];
}

/** Bar charts of the counts since the server started. */
export function toCounts({ starts, cells, failures }: Operations): OpsChart[] {
  return [
    bars(
      texts.ops.starts,
      Object.entries(starts).map(([kind, count]) => [texts.ops.startKinds[kind as keyof typeof starts], count]),
    ),
    bars(texts.ops.cells, Object.entries(cells.byStatus)),
    bars(
      texts.ops.failures,
      failures.map(({ cause, count }) => [cause, count]),
    ),
  ].filter(({ data }) => data.length > 0);
}

function bars(title: string, entries: [string, number][]): OpsChart {
  return {
    title,
    spec: { type: "bar", xKey: "name", series: [{ key: "count", label: title }] },
    data: entries.map(([name, count]) => ({ name, count })),
  };
}

/** Converts cumulative buckets to the count in each. */
export function toDistribution(title: string, { buckets }: Latency): OpsChart {
  const data = buckets.map(({ le, count }, index) => ({
    name: le === null ? texts.ops.over(formatBound(buckets[index - 1]?.le ?? 0)) : texts.ops.upTo(formatBound(le)),
    count: count - (buckets[index - 1]?.count ?? 0),
  }));
  return { title, spec: { type: "bar", xKey: "name", series: [{ key: "count", label: texts.ops.count }] }, data };
}

/** Does not round, because the bounds are round numbers. */
function formatBound(ms: number): string {
  return ms >= 1000 ? texts.units.seconds(String(ms / 1000)) : texts.units.ms(ms);
}
