import { ChartView } from "../charts/chart-view.tsx";
import { texts } from "../texts.ts";
import { useHost } from "./use-host.ts";

/** Shows the charts of one tool result inside an MCP host. */
export function ChartApp() {
  const host = useHost();
  if (host.state === "waiting") return <p className="chart-app-note">{texts.app.waiting}</p>;
  if (host.state === "failed") return <p className="chart-app-note">{host.reason}</p>;
  // The host also shows this app for calls without a chart; it then takes no space.
  if (host.charts.length === 0) return null;
  return (
    <div className="chart-app">
      {host.charts.map((found, index) =>
        found.kind === "chart" ? (
          <ChartView key={index} {...found.chart} />
        ) : (
          <div key={index} role="alert">
            <strong>{texts.chart.broken}</strong>
            <ul>
              {found.reasons.map((reason) => (
                <li key={reason}>{reason}</li>
              ))}
            </ul>
          </div>
        ),
      )}
    </div>
  );
}
