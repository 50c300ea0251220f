import { deriveFrom, type KnownNumbers } from "./known-numbers.ts";
import { readNumbers, type WrittenNumber } from "./read-numbers.ts";

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
