/** So many numbers of the answer itself may be combined with one another. */
const COMBINED = 60;
/** Nobody writes an answer that is longer; what stands behind is not looked at. */
const READ_CHARACTERS = 50_000;

/**
 * Numbers of an answer that stand nowhere in what the model was shown, and that no single step of arithmetic makes from what is. Dates, years, small
 * counts, ordinals, code and addresses are left alone: the rule is to miss one rather than to doubt one that is right.
 */
export function findUnknownNumbers(answer: string, readKnown: () => KnownNumbers): string[] {
  const written = [...new Map(readNumbers(withoutOrdinals(answer.slice(0, READ_CHARACTERS))).map((one) => [one.text, one])).values()];
  const claims = written.filter(isClaim);
  if (claims.length === 0) return [];
  const known = readKnown();
  const isKnown = ({ values }: WrittenNumber): boolean => values.some((value) => known.has(value));
  const unknown = new Set(claims.filter((one) => !isKnown(one)));
  if (unknown.size === 0) return [];
  const settled = written.filter((one) => !unknown.has(one)).slice(0, COMBINED);
  const derived = deriveFrom(settled.flatMap(({ values }) => values.map(({ value }) => value)));
  return [...unknown].filter(({ values }) => !values.some((value) => derived.has(value))).map(({ text }) => text);
}

/** Small whole numbers count things, and four digits are mostly a year. */
function isClaim({ text, values }: WrittenNumber): boolean {
  const isWhole = /^\d+$/.test(text);
  return !values.every(({ value }) => (isWhole && (value <= 100 || (text.length === 4 && value >= 1900 && value <= 2100))) || value === 0);
}

const MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*";
/** What has digits and is no quantity. Each is replaced by a space, so that its neighbours stay apart. */
const ordinals: readonly RegExp[] = [
  /`[^`\n]*`/g,
  /\]\([^()\s]{0,2000}\)/g, // where a link goes
  /\b[a-z][a-z\d+.-]*:\/\/\S+/gi,
  /^[ \t>]*\d{1,3}[.)](?=\s)/gm, // an item of a list
  /^[ \t]*#{1,6}[ \t]+\d+(?:\.\d+)*\.?(?=\s)/gm,
  /\b(?:figures?|charts?|tables?|steps?|sections?|notes?|items?|points?|no\.?|number|version|python|turn)\s+#?\d+(?:\.\d+)*/gi,
  /\[\^?\d{1,3}\]/g,
  /#\d+/g,
  /\b\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\b/g,
  /\b\d{1,4}[./-]\d{1,2}[./-]\d{2,4}\b/g,
  new RegExp(`\\b\\d{1,2}(?:st|nd|rd|th)?\\.?\\s+(?:of\\s+)?${MONTH}\\.?(?:,?\\s+\\d{2,4})?\\b`, "gi"),
  new RegExp(`\\b${MONTH}\\.?\\s+\\d{1,2}(?:st|nd|rd|th)?(?:\\s*[-–]\\s*\\d{1,2})?(?:,?\\s+\\d{4})?\\b`, "gi"),
  /\b\d{1,2}:\d{2}(?::\d{2})?\b/g,
  /\b(?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d+\.\d+\.\d+(?:\.\d+)*\b/g, // a version, an address; 1.234.567 is neither
  /\b(?:19|20)\d{2}\s*[-–/]\s*(?:(?:19|20)?\d{2})\b/g, // years
];

function withoutOrdinals(answer: string): string {
  return ordinals.reduce((text, pattern) => text.replaceAll(pattern, " "), withoutCode(answer));
}

function withoutCode(answer: string): string {
  let isCode = false;
  const isFence = (line: string): boolean => /^ {0,3}(?:`{3}|~{3})/.test(line);
  return answer
    .split("\n")
    .filter((line) => {
      if (isFence(line)) isCode = !isCode;
      return !isCode;
    })
    .join("\n");
}

/** A number as it stands in a text. */
export interface WrittenNumber {
  readonly text: string;
  /** What it can mean: `1,234` is 1234 to some and 1.234 to others. Never negative. */
  readonly values: readonly WrittenValue[];
}

export interface WrittenValue {
  readonly value: number;
  /** One in the last place that was written: the zeros at the end of 12,000 may be rounding. */
  readonly unit: number;
}

const scales: Readonly<Record<string, number>> = {
  ...{ k: 1e3, K: 1e3, thousand: 1e3 },
  ...{ M: 1e6, m: 1e6, mn: 1e6, mio: 1e6, million: 1e6 },
  ...{ B: 1e9, bn: 1e9, billion: 1e9 },
  ...{ T: 1e12, tn: 1e12, trillion: 1e12 },
};
const suffixes = ["%", "‰", "percent", "per cent", "bps?", "pp", "x", ...Object.keys(scales)].join("|");
const NUMBER = new RegExp(
  [
    String.raw`(?<![\p{L}\p{N}_])(?<!\d[.,])`,
    String.raw`(\d{1,3}(?:[ '\u2019\u00a0\u202f_]\d{3})+(?:[.,]\d+)?|\d[\d.,]*\d|\d)(?:[eE]([+-]?\d{1,3}))?`,
    String.raw`(?:\s?(${suffixes})(?![\p{L}\p{N}_])|(?![\p{L}\p{N}_]))`,
  ].join(""),
  "gu",
);

/** Every number of a text that stands by itself; not those in names, as `Q1` or `result_2`. */
export function readNumbers(text: string): WrittenNumber[] {
  return [...text.matchAll(NUMBER)].flatMap(([whole, digits = "", exponent = "0", suffix = ""]) => {
    const bare = readings(digits).map((one) => times(one, 10 ** Number(exponent)));
    const scale = scales[suffix];
    // 12m may also be metres or minutes
    const values = scale === undefined ? bare : bare.flatMap((one) => [one, times(one, scale)]);
    return values.length === 0 ? [] : [{ text: whole, values }];
  });
}

function times({ value, unit }: WrittenValue, factor: number): WrittenValue {
  return { value: value * factor, unit: unit * factor };
}

function readings(digits: string): WrittenValue[] {
  const plain = digits.replaceAll(/[ '\u2019\u00a0\u202f_](?=\d{3})/g, "");
  const found = new Map<number, WrittenValue>();
  const add = (text: string): void => {
    if (!/^\d+(?:\.\d+)?$/.test(text)) return;
    const value = Number(text);
    found.set(value, { value, unit: unitOf(text) });
  };
  add(plain); // 1234.5
  add(plain.replace(",", ".")); // 1234,5
  if (/^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(plain)) add(plain.replaceAll(",", "")); // 1,234.5
  if (/^\d{1,3}(?:\.\d{3})+(?:,\d+)?$/.test(plain)) add(plain.replaceAll(".", "").replace(",", ".")); // 1.234,5
  return [...found.values()];
}

function unitOf(text: string): number {
  const [whole = "", fraction] = text.split(".");
  if (fraction !== undefined) return 10 ** -fraction.length;
  const zeros = /0*$/.exec(whole)![0].length;
  return 10 ** Math.min(zeros, whole.length - 1);
}

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
function deriveFrom(numbers: readonly number[]): Pick<KnownNumbers, "has"> {
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
