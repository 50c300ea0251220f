import type { ChartAxis } from "../../src/protocol/chart-spec.ts";

const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 });
const everything = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 17 });

/** Short form of a number, for axis labels. */
export function formatTick(value: number, axis: ChartAxis | undefined): string {
  switch (axis?.format) {
    case "percent":
      return `${plain.format(toPercent(value, axis))}%`;
    case "currency":
      return money(axis, Math.abs(value) >= 100_000 ? { notation: "compact", maximumFractionDigits: 2 } : {}).format(value);
    case "compact":
      return compact.format(value);
    case "number":
    case undefined:
      return Math.abs(value) >= 1e7 || (value !== 0 && Math.abs(value) < 1e-4) ? compactOrPower(value) : plain.format(value);
  }
}

/** Full form of a number, with every digit, for tooltips and tables. */
export function formatExact(value: number, axis?: ChartAxis): string {
  if (axis?.format === "percent") return `${exactDigits(toPercent(value, axis))}%`;
  if (axis?.format === "currency") return money(axis, { maximumFractionDigits: 20 }).format(value);
  return exactDigits(value);
}

function exactDigits(value: number): string {
  return value !== 0 && (Math.abs(value) < 1e-6 || Math.abs(value) >= 1e21) ? String(value) : everything.format(value);
}

function compactOrPower(value: number): string {
  return Math.abs(value) >= 1e15 || Math.abs(value) < 1e-4 ? value.toExponential(2) : compact.format(value);
}

/** Rounds away binary fraction noise: 0.07 becomes 7, not 7.000000000000001. */
function toPercent(value: number, axis: ChartAxis): number {
  return axis.valueScale === "percent_points" ? value : Number((value * 100).toPrecision(15));
}

function money(axis: ChartAxis, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  try {
    return new Intl.NumberFormat("en-US", { style: "currency", currency: axis.currency ?? "USD", minimumFractionDigits: 0, ...options });
  } catch {
    // The currency code is not valid: show the plain number.
    return new Intl.NumberFormat("en-US", options);
  }
}
