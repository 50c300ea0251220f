import { texts } from "../texts.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const fixedSteps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14].map((count) => count * day),
];
const monthSteps = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

/** Ticks between two times at natural boundaries: full hours, days, first days of months and years. */
export function timeTicks(from: number, to: number, count = 6): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const fixed = rough < 20 * day ? fixedSteps.find((step) => step >= rough) : undefined;
  return fixed === undefined ? monthTicks(from, to, rough) : fixedTicks(from, to, fixed);
}

function fixedTicks(from: number, to: number, step: number): number[] {
  // Weeks begin on Monday; the epoch was a Thursday.
  const origin = step >= 7 * day ? 4 * day : 0;
  const first = Math.ceil((from - origin) / step) * step + origin;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_none, index) => first + index * step);
}

function monthTicks(from: number, to: number, rough: number): number[] {
  const months = monthSteps.find((step) => step * 30.4 * day >= rough) ?? 1200;
  const start = new Date(from);
  const ticks: number[] = [];
  let at = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months;
  for (; ; at += months) {
    const tick = Date.UTC(Math.floor(at / 12), at % 12, 1);
    if (tick > to) return ticks;
    if (tick >= from) ticks.push(tick);
  }
}

/** Label of a tick, with as much of the date as the distance between ticks requires. */
export function formatTimeTick(tick: number, step: number): string {
  const date = new Date(tick);
  const month = texts.chart.months[date.getUTCMonth()] ?? "";
  if (step >= 360 * day) return String(date.getUTCFullYear());
  if (step >= 27 * day)
    return date.getUTCMonth() === 0
      ? String(date.getUTCFullYear())
      : step < 90 * day
        ? month
        : `${month} ${String(date.getUTCFullYear()).slice(2)}`;
  if (step >= day) return `${date.getUTCDate()} ${month}`;
  const clock = date.toISOString().slice(11, step < minute ? 19 : 16);
  return clock.startsWith("00:00") ? `${date.getUTCDate()} ${month}` : clock;
}
