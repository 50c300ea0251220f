import type { WrittenValue } from "./read-numbers.ts";

/** Numbers that a model was shown, to be looked up as people write them: rounded, as a share or a percentage, in thousands or millions. */
export interface KnownNumbers {
  addText(text: string): void;
  addValues(values: Iterable<number>): void;
  has(written: WrittenValue): boolean;
}

/** Of what was shown in one piece, all numbers may be combined with one another when they are few. */
const FEW = 16;
const SCALES = [1, 100, 1e3, 1e6, 1e9];
/** Of what was worked out from numbers in one unit. */
const SHARE_OR_PERCENT = [1, 100];

export function createKnownNumbers(): KnownNumbers {
  const shown = createSortedNumbers();
  const derived = createSortedNumbers();
  return {
    addText(text) {
      const found = readAll(text);
      shown.add(found);
      if (found.length <= FEW) derived.add(combine(found));
    },
    addValues: (values) => shown.add(values),
    has: (written) => isAmong(shown, written, SCALES) || isAmong(derived, written, SHARE_OR_PERCENT),
  };
}

/** As data is written, and as people write, since a text may be either: 1,234.5 is one number here and two there. What is long is read fast. */
function readAll(text: string): number[] {
  const found = new Set<number>();
  for (const [digits] of text.matchAll(/\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?/g)) found.add(Number(digits));
  for (const [digits] of text.matchAll(/\d{1,3}(?:[,' \u2019\u00a0\u202f_]\d{3})+(?:\.\d+)?/g))
    found.add(Number(digits.replaceAll(/[^\d.]/g, "")));
  for (const [digits] of text.matchAll(/\d{1,3}(?:\.\d{3})*,\d+/g)) found.add(Number(digits.replaceAll(".", "").replace(",", ".")));
  return [...found];
}

/** What one step of arithmetic makes from these. They may be rounded themselves, so the outcome need not be exact. */
export function deriveFrom(numbers: readonly number[]): Pick<KnownNumbers, "has"> {
  const derived = createSortedNumbers();
  derived.add(combine([...new Set(numbers)]));
  return { has: ({ value, unit }) => isAmong(derived, { value, unit: Math.max(unit, value * 0.005) }, SHARE_OR_PERCENT) };
}

/** Sums, differences, products, shares, changes in percent. */
function* combine(numbers: readonly number[]): Generator<number> {
  const base = [...numbers, 1];
  for (const [index, a] of base.entries()) {
    for (const b of base.slice(index + 1)) {
      yield* [a + b, a - b, a * b];
      if (b !== 0) yield* [a / b, (a - b) / b];
      if (a !== 0) yield* [b / a, (b - a) / a];
    }
  }
}

function isAmong(numbers: SortedNumbers, { value, unit }: WrittenValue, scales: readonly number[]): boolean {
  return scales.some(
    (scale) =>
      numbers.hasBetween((value - unit) * scale, (value + unit) * scale) ||
      numbers.hasBetween((value - unit) / scale, (value + unit) / scale),
  );
}

interface SortedNumbers {
  add(values: Iterable<number>): void;
  hasBetween(low: number, high: number): boolean;
}

/** Without their signs: a fall of 5 is said of -5. */
function createSortedNumbers(): SortedNumbers {
  const values = new Set<number>();
  let sorted: Float64Array | null = null;
  return {
    add(added) {
      for (const value of added) if (Number.isFinite(value)) values.add(Math.abs(value));
      sorted = null;
    },
    hasBetween(low, high) {
      sorted ??= Float64Array.from(values).sort();
      const slack = 1e-9 * Math.max(1e-6, Math.abs(high)); // of binary fractions
      let [from, to] = [0, sorted.length];
      while (from < to) {
        const middle = (from + to) >>> 1;
        if (sorted[middle]! < low - slack) from = middle + 1;
        else to = middle;
      }
      return from < sorted.length && sorted[from]! <= high + slack;
    },
  };
}
