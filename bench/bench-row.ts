/** One figure of a benchmark. Names are stable, so that two runs can be compared. */
export interface BenchRow {
  readonly name: string;
  /** The median, unless the name says otherwise. */
  readonly value: number;
  readonly unit: "ms" | "MB" | "";
  /** What a user would use instead, measured in the same run. */
  readonly baseline: number | null;
  readonly baselineName: string | null;
  readonly ratio: number | null;
  /** The upper limit of the ratio, or of the value if there is no baseline. Null for figures without a target. */
  readonly target: number | null;
  readonly met: boolean | null;
}

export interface Measured {
  readonly name: string;
  readonly value: number;
  readonly unit: BenchRow["unit"];
  readonly baseline?: Baseline;
  readonly target?: number;
  /** A further condition, for example that all calls succeeded. */
  readonly holds?: boolean;
}

export interface Baseline {
  readonly name: string;
  readonly value: number;
}

export function toBenchRow({ name, value, unit, baseline, target, holds = true }: Measured): BenchRow {
  const ratio = baseline === undefined ? null : value / baseline.value;
  return {
    name,
    value: round(value),
    unit,
    baseline: baseline === undefined ? null : round(baseline.value),
    baselineName: baseline?.name ?? null,
    ratio: ratio === null ? null : round(ratio),
    target: target ?? null,
    met: target === undefined ? null : holds && (ratio ?? value) <= target,
  };
}

/** Rounds to four significant digits; more would be noise. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
