import { MIN_COVERAGE, toSparseVerdict, type CoverageVerdict, type PlottedSeries } from "./judge-coverage.ts";
import { DAY, distinct } from "./time-steps.ts";

/** A step like `7D`, `15min` or `1M`: a count and a unit. The same sizes as `freq` in Python. */
export const cadencePattern = /^\s*(?:(?<count>[1-9]\d*)\s*)?(?<unit>ms|s|min|h|D|W(?:-[A-Z]{3})?|[MQY][ES]?)\s*$/;

const milliseconds: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: DAY / 1440, h: DAY / 24, D: DAY, W: 7 * DAY };
const months: Readonly<Record<string, number>> = { M: 1, Q: 3, Y: 12 };
/** How far a point may be from its place, as a share of a step or of a month. */
const STEP_SLACK = 0.05;
const MONTH_SLACK = 0.15;

/** Judges a series by the intended step between its points, which must match `cadencePattern`. */
export function judgeByCadence({ places, hasValue }: PlottedSeries, cadence: string): CoverageVerdict | null {
  const own = distinct(places.filter((_, at) => hasValue[at]));
  const { count = "1", unit = "" } = cadencePattern.exec(cadence)?.groups ?? {};
  const first = own[0];
  if (first === undefined) return null;
  const perStep = (months[unit[0]!] ?? 0) * Number(count);
  const step = (milliseconds[unit.split("-")[0]!] ?? 0) * Number(count);
  const isMonthly = perStep > 0 && step === 0;
  const steps = isMonthly ? (toMonths(own.at(-1)!) - toMonths(first) + MONTH_SLACK) / perStep : (own.at(-1)! - first) / step + STEP_SLACK;
  const expected = Math.floor(steps) + 1;
  // Several points in one step count once.
  const observed = isMonthly ? own.length : distinct(own.map((at) => Math.floor((at - first) / step))).length;
  if (observed >= MIN_COVERAGE * expected) return null;
  return { ...toSparseVerdict(own, expected, "the given cadence"), observed };
}

/** A time as a number of months; the fraction is 0 on the first day of the month and 1 on the last. */
function toMonths(at: number): number {
  const date = new Date(Math.floor(at / DAY) * DAY);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return (year - 1970) * 12 + month + (date.getUTCDate() - 1) / (length - 1);
}
