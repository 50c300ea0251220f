import { memo, useState } from "react";
import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import { texts } from "../texts.ts";
import { ChartDrawing } from "./chart-drawing.tsx";
import { columnsOf } from "./columns-of.ts";
import { DataTable } from "./data-table.tsx";

export interface ChartViewProps {
  readonly spec: ChartSpec;
  readonly data: readonly ChartRow[];
  readonly title?: string | undefined;
  readonly height?: number;
}

/** One chart: title, drawing, and its numbers as a table. */
export const ChartView = memo(function ChartView({ spec, data, title = texts.chart.untitled, height = 320 }: ChartViewProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span>
        <button type="button" className="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {texts.chart.showTable}
        </button>
      </figcaption>
      <ChartDrawing spec={spec} data={data} title={title} height={height} />
      {asTable && <DataTable caption={texts.chart.table} columns={columnsOf(spec, data)} rows={data} />}
    </figure>
  );
});
