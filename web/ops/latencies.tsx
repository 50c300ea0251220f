import type { Operations } from "../../src/protocol/http-operations.ts";
import { ChartView } from "../charts/chart-view.tsx";
import { formatCount, formatDuration } from "../page/format.ts";
import { texts } from "../texts.ts";
import { toDistribution } from "./to-charts.ts";

const kinds = ["cellRun", "cellStart", "turn", "http"] as const;

export function Latencies({ latencies }: Pick<Operations, "latencies">) {
  return kinds.map((kind) => {
    const latency = latencies[kind];
    const [title, chart] = [texts.ops.latencyKinds[kind], toDistribution(texts.ops.latencyKinds[kind], latency)];
    return (
      <section key={kind} className="card">
        {latency.count === 0 ? (
          <>
            <h2>{title}</h2>
            <p className="soft">{texts.ops.noneMeasured}</p>
          </>
        ) : (
          <>
            <ChartView spec={chart.spec} data={chart.data} title={title} height={180} />
            <p className="soft">
              {texts.ops.p50} {formatDuration(latency.p50Ms ?? 0)} · {texts.ops.p95} {formatDuration(latency.p95Ms ?? 0)} ·{" "}
              {texts.ops.measured(formatCount(latency.count))}
            </p>
          </>
        )}
      </section>
    );
  });
}
