import type { Plot, PlotSeries } from "./plot.ts";

/** One series with the start and end of each mark. They differ from its values only when it is stacked. */
export interface Stacked {
  readonly series: PlotSeries;
  readonly from: readonly (number | null)[];
  readonly to: readonly (number | null)[];
}

/** Stacks bars on bars and areas on areas of the same axis. Negative values stack below zero. */
export function stack({ spec, rows }: Plot, visible: readonly PlotSeries[]): Stacked[] {
  const floors = new Map<string, number[]>();
  const floorOf = (series: PlotSeries, sign: string): number[] => {
    const name = `${series.mark} ${series.side} ${sign}`;
    const floor = floors.get(name) ?? rows.map(() => 0);
    floors.set(name, floor);
    return floor;
  };
  return visible.map((series) => {
    const isStacked = spec.stacked === true && (series.mark === "bar" || series.mark === "area");
    if (!isStacked) return { series, from: series.values.map((value) => (value === null ? null : 0)), to: series.values };
    const [from, to]: [(number | null)[], (number | null)[]] = [[], []];
    for (const [index, value] of series.values.entries()) {
      const floor = floorOf(series, series.mark === "bar" && value !== null && value < 0 ? "below" : "above");
      const start = floor[index] ?? 0;
      from.push(value === null ? null : start);
      to.push(value === null ? null : start + value);
      floor[index] = start + (value ?? 0);
    }
    return { series, from, to };
  });
}
