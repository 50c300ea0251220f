import { formatTick } from "./format-value.ts";
import { innerTicks } from "./nice-ticks.ts";
import type { Plot } from "./plot.ts";
import { formatTimeTick, timeTicks } from "./time-ticks.ts";

export interface XTicks {
  readonly values: readonly number[];
  readonly angle: number;
  readonly height: number;
  readonly format: (value: number) => string;
}

const letter = 6.6;
const maxCharacters = 22;
/** Space between two rotated labels. */
const rotatedSpace = 18;

/** As many ticks as fit in `width` pixels; labels that do not fit side by side are rotated. */
export function xTicks({ type, x }: Plot, [from, to]: readonly [number, number], width: number): XTicks {
  if (x.kind === "category") return categoryTicks(x.labels, [from, to], width);
  const count = Math.max(2, Math.min(8, Math.floor(width / 80)));
  if (x.kind === "time") {
    const values = timeTicks(from, to, count);
    const step = values.length > 1 ? (values[1] ?? 0) - (values[0] ?? 0) : to - from;
    return { values, angle: 0, height: 24, format: (value) => formatTimeTick(value, step) };
  }
  const edges =
    x.values.length <= count && type === "histogram" ? [...x.values, (x.values.at(-1) ?? 0) + x.step] : innerTicks(from, to, count);
  return { values: edges, angle: 0, height: 24, format: (value) => formatTick(value, x.axis) };
}

function categoryTicks(labels: readonly string[], [from, to]: readonly [number, number], width: number): XTicks {
  const places = labels.map((_label, index) => index).filter((index) => index >= from && index <= to);
  const words = (value: number): string => shorten(labels[value] ?? "");
  const widest = places.reduce((most, index) => Math.max(most, words(index).length), 1) * letter + 10;
  const room = width / Math.max(1, places.length);
  if (widest <= room) return { values: places, angle: 0, height: 24, format: words };
  const isRotated = widest > 50 && room >= rotatedSpace / 3;
  const every = Math.ceil((isRotated ? rotatedSpace : widest) / room);
  const values = places.filter((_index, order) => order % every === 0);
  return { values, angle: isRotated ? -40 : 0, height: isRotated ? Math.min(100, 16 + widest * 0.64) : 24, format: words };
}

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters - 1)}…` : text;
}
