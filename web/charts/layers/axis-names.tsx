import { useChartWidth, usePlotArea } from "recharts";
import type { Plot } from "../plot.ts";

/** Axis titles. The y title is horizontal, above its axis, so that it is easy to read. */
export function AxisNames({ plot, bottom }: { plot: Plot; bottom: number }) {
  const area = usePlotArea();
  const width = useChartWidth() ?? 0;
  const { xAxis, yAxis, yAxisRight, type, yKey } = plot.spec;
  if (!area) return null;
  const leftName = yAxis?.label ?? (type === "heatmap" ? yKey : undefined);
  return (
    <g className="chart-axis-name">
      {leftName !== undefined && (
        <text x={2} y={12}>
          {leftName}
        </text>
      )}
      {yAxisRight?.label !== undefined && (
        <text x={width - 2} y={12} textAnchor="end">
          {yAxisRight.label}
        </text>
      )}
      {xAxis?.label !== undefined && (
        <text x={area.x + area.width / 2} y={bottom} textAnchor="middle">
          {xAxis.label}
        </text>
      )}
    </g>
  );
}
