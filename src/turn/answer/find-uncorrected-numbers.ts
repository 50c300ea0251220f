import type { CoverageEvent } from "../../protocol/coverage-event.ts";
import { readNumbers, removeNonQuantities, type WrittenNumber, type WrittenValue } from "./check-numbers.ts";
import type { UncorrectedAmount } from "./uncorrected-amounts.ts";

export interface UncorrectedNumber {
  /** As the answer has it. */
  readonly text: string;
  readonly amount: UncorrectedAmount;
}

/**
 * Finds numbers of an answer that state an uncorrected change. Not numbers that count things, years, percentages, values of an event whose entity the
 * sentence names, totals at the ends of a range, and changes whose corrected number the answer states too.
 */
export function findUncorrectedNumbers(
  answer: string,
  { amounts, events }: { amounts: readonly UncorrectedAmount[]; events: readonly CoverageEvent[] },
): UncorrectedNumber[] {
  if (amounts.length === 0) return [];
  const written = locateNumbers(answer.slice(0, MAX_CHARACTERS));
  const found = written.filter(isAmount).flatMap((one): UncorrectedNumber[] => {
    const amount = amounts.find((candidate) => {
      const value = closest(one, candidate.total);
      if (value === null || closest(one, candidate.stable) !== null) return false;
      return (
        !isOfEvent(one, value, { total: candidate.total, events }) &&
        !isLevel(one, value, candidate) &&
        !isCorrected(written, one, candidate)
      );
    });
    return amount === undefined ? [] : [{ text: one.number.text.trim(), amount }];
  });
  return [...new Map(found.map((one) => [one.text, one])).values()];
}

const MAX_CHARACTERS = 50_000;

interface LocatedNumber {
  readonly number: WrittenNumber;
  /** Text of its sentence before and after it. */
  readonly before: string;
  readonly after: string;
}

function locateNumbers(answer: string): LocatedNumber[] {
  const text = removeNonQuantities(answer);
  let from = 0;
  return readNumbers(text).map((number) => {
    const at = text.indexOf(number.text, from);
    from = at + number.text.length;
    const start = text.slice(0, at).split(SENTENCE_END).at(-1)!;
    return { number, before: start, after: text.slice(from).split(SENTENCE_END, 1)[0]! };
  });
}

/** Not the point of "No. 5" or of a decimal: a space and a capital letter follow. */
const SENTENCE_END = /[.!?;]["')\]]?\s+(?=[\p{Lu}\d"'([*-])|\n/u;

const PERCENT = /(?:%|‰|percent|per cent|bps?|pp|x)$/i;
const COUNTED =
  /^\s*(?:(?:of|different|distinct|trading|calendar|reporting|consecutive)\s+)*(?:second|minute|hour|day|week|weekday|month|quarter|year|row|record|point|observation|sample|period|event|time|venue|exchange|entit|member|account|wallet|user|customer|store|shop|market|countr|region|bank|fund|compan|report|value|null|item|product)/i;
const CHANGES =
  /flow|net\b|chang|increas|decreas|\brise|\brose|\bfall|\bfell|\bdrop|\bgrew|grow|\bgain|\bloss|\blost|\badd|\bup\b|\bdown\b|mov(?:ed|ement)|declin|surg|plus|minus|total/i;
const STATED =
  /(?:\b(?:was|were|is|(?<!as )of|by|only|about|around|roughly|nearly|almost|exactly|totall?ed|came to)|[:=|(\u2212+$€£¥-]) ?(?:[$€£¥] ?)?[\u2212+-]? ?\*{0,3}$/i;

/** Whether the number can be an amount: a bare integer under 10,000 often counts things or is a year. */
function isAmount({ number: { text }, before, after }: LocatedNumber): boolean {
  if (PERCENT.test(text.trim()) || COUNTED.test(after)) return false;
  return !/^\d{1,4}$/.test(text.trim()) || (STATED.test(before.replaceAll(/\s+/g, " ")) && CHANGES.test(before + after));
}

/** The reading of the number that is the amount, as precisely as it is written; null if none is. */
function closest({ number: { values } }: LocatedNumber, amount: number): number | null {
  const size = Math.abs(amount);
  const readings = values.flatMap(({ value, unit }) => {
    const digits = Math.log10(value / unit);
    return (digits >= 3 ? [1, 1e3, 1e6, 1e9] : [1]).map((scale): WrittenValue => ({ value: value * scale, unit: unit * scale }));
  });
  // Long numbers may be cut instead of rounded.
  const tolerance = ({ value, unit }: WrittenValue): number =>
    Math.min(unit <= 1e-4 * value ? unit : unit / 2, Math.max(0.005 * size, 1e-9));
  return readings.find((one) => Math.abs(one.value - size) <= tolerance(one) * 1.0001)?.value ?? null;
}

function isOfEvent(
  { before, after }: LocatedNumber,
  value: number,
  { total, events }: { total: number; events: readonly CoverageEvent[] },
): boolean {
  const sentence = `${before} ${after}`.toLowerCase();
  return events.some((event) => {
    const size = Math.abs(event.value ?? Number.NaN);
    return Math.abs(value - size) <= Math.abs(value - Math.abs(total)) && sentence.includes(event.entity.toLowerCase());
  });
}

const LEVEL = /\b(?:from|to|at|reach\w*|st(?:oo|an)d\w*|h[eo]ld\w*|now|worth|balance|level)\b[^.\d]{0,15}$/i;

function isLevel({ before }: LocatedNumber, value: number, { total, levels }: UncorrectedAmount): boolean {
  return LEVEL.test(before) && levels.some((level) => Math.abs(value - Math.abs(level)) <= Math.abs(value - Math.abs(total)));
}

/** Whether the answer also has the change without coverage. A small count is not enough. */
function isCorrected(written: readonly LocatedNumber[], flagged: LocatedNumber, { stable }: UncorrectedAmount): boolean {
  return written.some((other) => {
    if (other === flagged || closest(other, stable) === null || PERCENT.test(other.number.text.trim())) return false;
    return !/^\d{1,3}$/.test(other.number.text.trim()) || (STATED.test(other.before) && !COUNTED.test(other.after));
  });
}
