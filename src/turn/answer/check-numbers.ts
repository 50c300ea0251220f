import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { FigureAxes, FigureAxis } from "../../protocol/figure.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { Conversation } from "../create-conversation.ts";
import { describeError } from "../describe-error.ts";
import type { TurnParts } from "../turn-request.ts";
import { readItemText } from "./build-best-effort-terminal-outcome.ts";

type NumberSources = Pick<TurnParts, "request" | "conversation" | "context" | "ledger" | "plan">;

const LISTED_NUMBERS = 12;

/** Reports numbers of the answer that appear in nothing the model has read. The severity is info, because such a number may still be right. */
export function checkNumbers(turn: NumberSources, { answer, gaps }: { answer: string; gaps: readonly Gap[] }): Gap[] {
  let unknown: readonly string[];
  try {
    unknown = findUnknownNumbers(answer, () => collectKnownNumbers(turn, gaps));
  } catch (error) {
    const detail = `The numbers in the answer could not be checked: ${describeError(error)}`;
    return [{ code: "numbers_not_checked", severity: "info", detail }];
  }
  if (unknown.length === 0) return [];
  const more = unknown.length - LISTED_NUMBERS;
  const listed = `${unknown.slice(0, LISTED_NUMBERS).join("; ")}${more > 0 ? ` and ${more} more` : ""}`;
  const subject = unknown.length === 1 ? "This number appears" : "These numbers appear";
  return [{ code: "number_not_in_results", severity: "info", detail: `${subject} in no tool result: ${listed}.` }];
}

/** Results beyond this size are not read again. */
const MAX_RESULT_BYTES = 512 * 1024;
const MAX_DRAWN_VALUES = 50_000;

/** Collects the numbers that an answer may use: everything the model has read or requested, all results, and the drawn values. */
function collectKnownNumbers({ request, conversation, context, ledger, plan }: NumberSources, gaps: readonly Gap[]): KnownNumbers {
  const known = createKnownNumbers();
  const texts = [
    request.question,
    ...plan.measures,
    plan.population,
    ...conversation.exchanges.flatMap((exchange) => [exchange.question, exchange.answer]),
    ...context.resultTexts(),
    ...ledger.calls.filter(({ tool }) => tool !== "final_response").map(({ input }) => JSON.stringify(input) ?? ""),
    ...gaps.map(({ detail }) => detail),
    ...readResults(conversation),
  ];
  for (const text of texts) known.addText(text);
  known.addValues(readDrawnValues(ledger.artifacts));
  return known;
}

/** Newest first, as far as the size limit allows. */
function* readResults({ evidence }: Conversation): Generator<string> {
  let bytesLeft = MAX_RESULT_BYTES;
  for (const alias of evidence.aliases().toReversed()) {
    const item = evidence.get(alias)!;
    if (item.source !== "result" || item.bytes > bytesLeft) continue;
    bytesLeft -= item.bytes;
    yield readItemText(item) ?? "";
  }
}

function* readDrawnValues(artifacts: readonly ArtifactEnvelope[]): Generator<number> {
  let valuesLeft = MAX_DRAWN_VALUES;
  for (const artifact of artifacts) {
    const rows = artifact.kind === "chart" ? artifact.data : (artifact.figure?.axes ?? []).flatMap(listAmounts);
    for (const values of rows.flatMap((row) => Object.values(row)).map((value) => (Array.isArray(value) ? value : [value])))
      for (const value of values) if (typeof value === "number" && valuesLeft-- > 0) yield value;
  }
}

/** The numbers of each series, without times and the places of categories, which a reader does not see as numbers. */
function listAmounts({ x, y, series }: FigureAxes): Record<string, unknown>[] {
  const isSeen = ({ scale }: FigureAxis): boolean => scale !== "time" && scale !== "category";
  return series.map((one) => ({
    x: isSeen(x) ? one.x : [],
    y: isSeen(y) ? one.y : [],
    errors: [...(one.xerr ?? []), ...(one.yerr ?? [])],
    baseline: one.baseline ?? [],
    edges: one.type === "histogram" ? (one.edges ?? []) : [],
  }));
}

/** How many numbers of the answer itself may be combined with each other. */
const MAX_COMBINED = 60;
/** Text beyond this length is not checked. */
const MAX_CHARACTERS = 50_000;

/**
 * Returns the numbers of an answer that are neither known nor one arithmetic step away from known numbers. Skips dates, years, small counts, ordinals,
 * code and URLs: missing a wrong number is better than doubting a right one.
 */
export function findUnknownNumbers(answer: string, readKnown: () => KnownNumbers): string[] {
  const written = [
    ...new Map(readNumbers(removeNonQuantities(answer.slice(0, MAX_CHARACTERS))).map((number) => [number.text, number])).values(),
  ];
  const claims = written.filter(isClaim);
  if (claims.length === 0) return [];
  const known = readKnown();
  const isKnown = ({ values }: WrittenNumber): boolean => values.some((value) => known.has(value));
  const unknown = new Set(claims.filter((claim) => !isKnown(claim)));
  if (unknown.size === 0) return [];
  const accepted = written.filter((number) => !unknown.has(number)).slice(0, MAX_COMBINED);
  const derived = deriveFrom(accepted.flatMap(({ values }) => values.map(({ value }) => value)));
  return [...unknown].filter(({ values }) => !values.some((value) => derived.has(value))).map(({ text }) => text);
}

/** Small integers usually count things, and four digits are usually a year: neither is a claim. */
function isClaim({ text, values }: WrittenNumber): boolean {
  const isInteger = /^\d+$/.test(text);
  return !values.every(
    ({ value }) => (isInteger && (value <= 100 || (text.length === 4 && value >= 1900 && value <= 2100))) || value === 0,
  );
}

const MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*";
/** Digits that are not quantities. A space replaces each match, so that the text around it stays separated. */
const nonQuantities: readonly RegExp[] = [
  /`[^`\n]*`/g,
  /\]\([^()\s]{0,2000}\)/g, // target of a link
  /\b[a-z][a-z\d+.-]{0,20}:\/\/\S+/gi,
  /^[ \t>]*\d{1,3}[.)](?=\s)/gm, // list item
  /^[ \t]*#{1,6}[ \t]+\d+(?:\.\d+)*\.?(?=\s)/gm,
  /\b(?:figures?|charts?|tables?|steps?|sections?|notes?|items?|points?|no\.?|number|version|python|turn)\s+#?\d+(?:\.\d+)*/gi,
  /\[\^?\d{1,3}\]/g,
  /#\d+/g,
  /\b\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\b/g,
  /\b\d{1,4}[./-]\d{1,2}[./-]\d{2,4}\b/g,
  new RegExp(`\\b\\d{1,2}(?:st|nd|rd|th)?\\.?\\s+(?:of\\s+)?${MONTH}\\.?(?:,?\\s+\\d{2,4})?\\b`, "gi"),
  new RegExp(`\\b${MONTH}\\.?\\s+\\d{1,2}(?:st|nd|rd|th)?(?:\\s*[-–]\\s*\\d{1,2})?(?:,?\\s+\\d{4})?\\b`, "gi"),
  /\b\d{1,2}:\d{2}(?::\d{2})?\b/g,
  /\b(?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d+\.\d+\.\d+(?:\.\d+)*\b/g, // version or IP address, but not 1.234.567
  /\b(?:19|20)\d{2}\s*[-–/]\s*(?:(?:19|20)?\d{2})\b/g, // range of years
];

export function removeNonQuantities(answer: string): string {
  return nonQuantities.reduce((text, pattern) => text.replaceAll(pattern, " "), removeCode(answer));
}

function removeCode(answer: string): string {
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

export interface WrittenNumber {
  readonly text: string;
  /** All possible readings, never negative: `1,234` may be 1234 or 1.234. */
  readonly values: readonly WrittenValue[];
}

export interface WrittenValue {
  readonly value: number;
  /** The precision as written: one unit of the last digit. Trailing zeros, as in 12,000, may be rounding. */
  readonly unit: number;
}

const factorsBySuffix: Readonly<Record<string, number>> = {
  ...{ k: 1e3, K: 1e3, thousand: 1e3 },
  ...{ M: 1e6, m: 1e6, mn: 1e6, mio: 1e6, million: 1e6 },
  ...{ B: 1e9, bn: 1e9, billion: 1e9 },
  ...{ T: 1e12, tn: 1e12, trillion: 1e12 },
};
const suffixes = ["%", "‰", "percent", "per cent", "bps?", "pp", "x", ...Object.keys(factorsBySuffix).map(RegExp.escape)].join("|");
const NUMBER = new RegExp(
  [
    String.raw`(?<![\p{L}\p{N}_])(?<!\d[.,])`,
    String.raw`(\d{1,3}(?:[ '\u2019\u00a0\u202f_]\d{3})+(?:[.,]\d+)?|\d[\d.,]*\d|\d)(?:[eE]([+-]?\d{1,3}))?`,
    String.raw`(?:\s?(${suffixes})(?![\p{L}\p{N}_])|(?![\p{L}\p{N}_]))`,
  ].join(""),
  "gu",
);

/** Finds every standalone number of a text, but not digits in names such as `Q1` or `result_2`. */
export function readNumbers(text: string): WrittenNumber[] {
  return [...text.matchAll(NUMBER)].flatMap(([match, digits = "", exponent = "0", suffix = ""]) => {
    const unscaled = readDigits(digits).map((reading) => multiply(reading, 10 ** Number(exponent)));
    const factor = factorsBySuffix[suffix];
    // keep the unscaled reading, too: 12m may be metres or minutes
    const values = factor === undefined ? unscaled : unscaled.flatMap((reading) => [reading, multiply(reading, factor)]);
    return values.length === 0 ? [] : [{ text: match, values }];
  });
}

function multiply({ value, unit }: WrittenValue, factor: number): WrittenValue {
  return { value: value * factor, unit: unit * factor };
}

function readDigits(digits: string): WrittenValue[] {
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
  const [integer = "", fraction] = text.split(".");
  if (fraction !== undefined) return 10 ** -fraction.length;
  let zeros = 0;
  while (zeros < integer.length - 1 && integer.at(-1 - zeros) === "0") zeros += 1;
  return 10 ** zeros;
}

/** The numbers that the model has read. Lookups accept other ways to write them: rounded, as a share or percentage, in thousands or millions. */
export interface KnownNumbers {
  addText(text: string): void;
  addValues(values: Iterable<number>): void;
  has(written: WrittenValue): boolean;
}

/** Numbers of one text are combined with each other only up to this count. */
const MAX_COMBINED_PER_TEXT = 16;
/** An answer may write a known number multiplied or divided by one of these; a derived number only as a share or a percentage. */
const KNOWN_SCALES = [1, 100, 1e3, 1e6, 1e9];
const DERIVED_SCALES = [1, 100];

export function createKnownNumbers(): KnownNumbers {
  const shown = createSortedNumbers();
  const derived = createSortedNumbers();
  return {
    addText(text) {
      const found = readDataNumbers(text);
      shown.add(found);
      if (found.length <= MAX_COMBINED_PER_TEXT) derived.add(combine(found));
    },
    addValues: (values) => shown.add(values),
    has: (written) => isAmong(shown, written, KNOWN_SCALES) || isAmong(derived, written, DERIVED_SCALES),
  };
}

/** Reads numbers in data notation and in written notation, because a text may use either: `1,234.5` is two numbers in CSV. Fast for long texts. */
function readDataNumbers(text: string): number[] {
  const found = new Set<number>();
  for (const [digits] of text.matchAll(/\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?/g)) found.add(Number(digits));
  for (const [digits] of text.matchAll(/\d{1,3}(?:[,' \u2019\u00a0\u202f_]\d{3})+(?:\.\d+)?/g))
    found.add(Number(digits.replaceAll(/[^\d.]/g, "")));
  for (const [digits] of text.matchAll(/(?<![\d.])(?:\d{1,3}(?:\.\d{3})+|\d+),\d+/g))
    found.add(Number(digits.replaceAll(".", "").replace(",", ".")));
  return [...found];
}

/** The numbers that one arithmetic step yields. The inputs may be rounded, so matches are approximate. */
function deriveFrom(numbers: readonly number[]): Pick<KnownNumbers, "has"> {
  const derived = createSortedNumbers();
  derived.add(combine([...new Set(numbers)]));
  return { has: ({ value, unit }) => isAmong(derived, { value, unit: Math.max(unit, value * 0.005) }, DERIVED_SCALES) };
}

/** Sums, differences, products, ratios and relative changes of all pairs. */
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

/** Stores absolute values, because a change of -5 is written as "a fall of 5". */
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
      const slack = 1e-9 * Math.max(1e-6, Math.abs(high)); // for binary fractions
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
