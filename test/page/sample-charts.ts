import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";

export interface SampleChart {
  readonly name: string;
  readonly title: string;
  readonly spec: ChartSpec;
  readonly data: ChartRow[];
}

/** One chart of each type; together they use every feature of a chart. */
export const sampleCharts: readonly SampleChart[] = [
  {
    name: "line",
    title: "Reserves of two venues, with a month without reports",
    spec: {
      type: "line",
      xKey: "day",
      series: [
        { key: "meridian", label: "Meridian" },
        { key: "harbour", label: "Harbour" },
      ],
      xAxis: { type: "time" },
      yAxis: { label: "BTC", format: "compact" },
      referenceLines: [{ axis: "x", value: "2024-06-01", label: "Harbour listed" }],
    },
    data: days(365, (n) => ({
      meridian: n >= 240 && n < 270 ? null : Math.round(93_000 + 9_000 * wave(n, 60) + 20 * n),
      harbour: n < 152 ? null : Math.round(35_000 + 90 * (n - 152) + 3_000 * wave(n, 31)),
    })),
  },
  {
    name: "bar",
    title: "Revenue by quarter",
    spec: {
      type: "bar",
      xKey: "quarter",
      series: [
        { key: "actual", label: "Reported", errorKey: "error" },
        { key: "estimate", label: "Estimate" },
      ],
      yAxis: { format: "currency", currency: "USD" },
    },
    data: ["2024 Q1", "2024 Q2", "2024 Q3", "2024 Q4", "2025 Q1", "2025 Q2"].map((quarter, n) => ({
      quarter,
      actual: n === 3 ? null : 820 + 70 * n,
      error: 35,
      estimate: 800 + 75 * n,
    })),
  },
  {
    name: "stacked-bar",
    title: "Net flow by month",
    spec: {
      type: "bar",
      xKey: "month",
      stacked: true,
      series: [
        { key: "exchanges", label: "Exchanges" },
        { key: "custodians", label: "Custodians" },
        { key: "miners", label: "Miners" },
      ],
      xAxis: { label: "Month" },
      yAxis: { label: "BTC", format: "compact" },
      referenceLines: [{ axis: "y", value: 0 }],
    },
    data: Array.from({ length: 12 }, (_none, n) => ({
      month: `2025-${String(n + 1).padStart(2, "0")}`,
      exchanges: Math.round(4_000 * wave(n, 7)),
      custodians: Math.round(2_500 * wave(n + 3, 5)),
      miners: 800,
    })),
  },
  {
    name: "area",
    title: "Share of volume",
    spec: {
      type: "area",
      xKey: "day",
      stacked: true,
      series: [
        { key: "a", label: "North" },
        { key: "b", label: "Atlas" },
        { key: "c", label: "Quarry" },
      ],
      xAxis: { type: "time" },
      yAxis: { format: "percent", valueScale: "fraction" },
    },
    data: days(120, (n) => {
      const [a, b] = [round(0.4 + 0.1 * wave(n, 45)), round(0.3 + 0.05 * wave(n, 20))];
      return { a, b, c: n > 80 && n < 90 ? null : round(1 - a - b) };
    }),
  },
  {
    name: "scatter",
    title: "Volume against return",
    spec: {
      type: "scatter",
      xKey: "volume",
      series: [
        { key: "btc", label: "BTC" },
        { key: "eth", label: "ETH" },
      ],
      xAxis: { type: "number", label: "Volume", format: "compact" },
      yAxis: { label: "Return", format: "percent", valueScale: "percent_points" },
    },
    data: Array.from({ length: 160 }, (_none, n) => ({
      volume: Math.round(1_000_000 + 900_000 * wave(n * 7, 31)),
      btc: n % 2 === 0 ? round(4 * wave(n, 13)) : null,
      eth: n % 2 === 0 ? null : round(6 * wave(n, 17)),
    })),
  },
  {
    name: "composed",
    title: "Price and volume",
    spec: {
      type: "composed",
      xKey: "day",
      series: [
        { key: "price", label: "Price", type: "line", errorKey: "spread" },
        { key: "volume", label: "Volume", type: "bar", yAxis: "right" },
        { key: "fair", label: "Fair value", type: "area" },
        { key: "trade", label: "Our trades", type: "scatter" },
      ],
      xAxis: { type: "time", label: "Day" },
      yAxis: { label: "US dollars", format: "currency", currency: "USD" },
      yAxisRight: { label: "Coins", format: "compact" },
      brush: true,
      legend: true,
      referenceLines: [
        { axis: "y", value: 45, label: "mean" },
        { axis: "x", value: "2024-01-20", label: "split" },
      ],
      referenceAreas: [
        { x1: "2024-01-05", x2: "2024-01-09", label: "holiday" },
        { y1: 30, y2: 33, label: "support" },
      ],
    },
    data: days(40, (n) => ({
      price: n === 24 || n === 25 ? null : round(44 + 6 * wave(n, 14)),
      spread: n % 5 === 0 ? 1.5 : null,
      volume: Math.round(9_000 + 8_000 * wave(n, 9)),
      fair: round(40 + 3 * wave(n, 30)),
      trade: n % 7 === 0 ? round(43 + 6 * wave(n, 14)) : null,
    })),
  },
  {
    name: "histogram",
    title: "Daily returns",
    spec: {
      type: "histogram",
      xKey: "from",
      series: [{ key: "count", label: "Days" }],
      xAxis: { type: "number", label: "Return", format: "percent", valueScale: "percent_points" },
      yAxis: { label: "Days" },
    },
    data: Array.from({ length: 24 }, (_none, n) => ({ from: -6 + n / 2, count: Math.round(90 * Math.exp(-(((n - 12) / 5) ** 2))) })),
  },
  {
    name: "heatmap",
    title: "Trades by hour and weekday",
    spec: { type: "heatmap", xKey: "hour", yKey: "weekday", valueKey: "trades", series: [], xAxis: { label: "Hour" } },
    data: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].flatMap((weekday, day) =>
      Array.from({ length: 24 }, (_none, hour) => ({
        hour,
        weekday,
        trades: day === 2 && hour > 4 && hour < 8 ? null : Math.round(900 + 400 * wave(hour - 6, 24) - 60 * day),
      })),
    ),
  },
  {
    name: "candlestick",
    title: "BTC by day",
    spec: {
      type: "candlestick",
      xKey: "day",
      series: [],
      ohlc: { openKey: "open", highKey: "high", lowKey: "low", closeKey: "close" },
      xAxis: { type: "time" },
      yAxis: { format: "currency", currency: "USD" },
      brush: true,
    },
    data: days(90, (n) => {
      const [open, close] = [60_000 + 4_000 * wave(n, 40), 60_000 + 4_000 * wave(n + 2, 38)].map(Math.round) as [number, number];
      return n === 30
        ? { open: null, high: null, low: null, close: null }
        : { open, close, high: Math.max(open, close) + 700, low: Math.min(open, close) - 500 };
    }),
  },
];

const wavy = (n: number): number => round(100 * wave(n, 700) + 20 * wave(n, 37));
const fiveThousand = <Row>(row: (n: number) => Row): Row[] => Array.from({ length: 5000 }, (_none, n) => row(n));

/** Five thousand points of each type. */
export const largeCharts: readonly SampleChart[] = [
  ...(["line", "scatter", "bar", "area", "histogram"] as const).map((type) => ({
    name: `large-${type}`,
    title: `Five thousand points as ${type}`,
    spec: { type, xKey: "n", series: [{ key: "value" }], xAxis: { type: "number" as const } },
    data: fiveThousand((n) => ({ n, value: type === "histogram" ? Math.abs(wavy(n)) : wavy(n) })),
  })),
  {
    name: "large-composed",
    title: "Five thousand points, four ways",
    spec: {
      type: "composed",
      xKey: "n",
      xAxis: { type: "number" },
      brush: true,
      series: [
        { key: "line", type: "line", errorKey: "error" },
        { key: "bar", type: "bar", yAxis: "right" },
        { key: "area", type: "area" },
        { key: "dot", type: "scatter" },
      ],
    },
    data: fiveThousand((n) => ({ n, line: wavy(n), error: 3, bar: n % 97, area: wavy(n + 90), dot: wavy(n + 300) })),
  },
  {
    name: "large-heatmap",
    title: "Five thousand cells",
    spec: { type: "heatmap", xKey: "x", yKey: "y", valueKey: "value", series: [] },
    data: fiveThousand((n) => ({ x: n % 100, y: Math.floor(n / 100), value: wavy(n) })),
  },
  {
    name: "large-candlestick",
    title: "Five thousand days",
    spec: {
      type: "candlestick",
      xKey: "n",
      series: [],
      ohlc: { openKey: "open", highKey: "high", lowKey: "low", closeKey: "close" },
      xAxis: { type: "number" },
      brush: true,
    },
    data: fiveThousand((n) => ({ n, open: wavy(n), close: wavy(n + 1), high: wavy(n) + 30, low: wavy(n) - 30 })),
  },
];

function days(count: number, row: (n: number) => ChartRow): ChartRow[] {
  return Array.from({ length: count }, (_none, n) => ({ day: new Date(Date.UTC(2024, 0, 1 + n)).toISOString().slice(0, 10), ...row(n) }));
}

function wave(n: number, period: number): number {
  return Math.sin((n * 2 * Math.PI) / period);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
