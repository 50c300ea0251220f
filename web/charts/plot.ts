import type { ChartAxis, ChartRow, ChartSpec, ChartType } from "../../src/protocol/chart-spec.ts";

export type Mark = "line" | "bar" | "area" | "scatter";
export type Side = "left" | "right";
export type XKind = "time" | "number" | "category";

export interface PlotSeries {
  readonly key: string;
  readonly label: string;
  readonly mark: Mark;
  readonly side: Side;
  /** Index in the palette. It does not change when other series are hidden. */
  readonly colour: number;
  readonly values: readonly (number | null)[];
  /** Length of the error bar on either side. */
  readonly errors: readonly (number | null)[] | null;
}

export interface PlotX {
  readonly kind: XKind;
  /** Milliseconds, numbers, or the index of a category: 0, 1, 2… */
  readonly values: readonly number[];
  /** Labels of a category axis, one per index. */
  readonly labels: readonly string[];
  /** Smallest distance between two neighbours: the space for one bar. */
  readonly step: number;
  readonly axis: ChartAxis;
}

export interface PlotHeat {
  readonly columns: readonly string[];
  readonly rows: readonly string[];
  readonly cells: readonly { readonly column: number; readonly row: number; readonly value: number | null; readonly index: number }[];
  readonly min: number;
  readonly max: number;
}

/** A chart's numbers as they are drawn: sorted by x, positions as numbers, gaps as null. */
export interface Plot {
  readonly type: ChartType;
  readonly spec: ChartSpec;
  /** In drawing order. */
  readonly rows: readonly ChartRow[];
  readonly x: PlotX;
  readonly series: readonly PlotSeries[];
  readonly candles: readonly (readonly [open: number, high: number, low: number, close: number] | null)[] | null;
  readonly heat: PlotHeat | null;
}
