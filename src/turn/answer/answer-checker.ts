import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import { createMarkdownSanitizer } from "./sanitize-markdown.ts";

/** Filters an answer while it streams: removes claims about figures that do not exist, and makes the Markdown safe. Released text is final. */
export interface AnswerChecker {
  push(text: string): string;
  /** Returns the checked rest. */
  end(): string;
  readonly removedClaims: number;
}

export function createAnswerChecker(artifacts: readonly ArtifactEnvelope[]): AnswerChecker {
  const sanitizer = createMarkdownSanitizer(new Set(artifacts.map(({ url }) => url)));
  let lastLine: string[] = [];
  let isFenced = false;
  let removedClaims = 0;

  function removeClaims(line: string): string {
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced;
    if (isFenced || /^\s*\|/.test(line)) return line;
    const sentences = splitSentences(line);
    const kept = sentences.filter((sentence) => !claimsMissingFigure(sentence, artifacts));
    removedClaims += sentences.length - kept.length;
    return kept.join("");
  }

  return {
    push(text) {
      const lines = text.split("\n");
      const last = lines.pop()!;
      let released = "";
      for (const line of lines) {
        released += sanitizer.push(`${removeClaims(lastLine.join("") + line)}\n`);
        lastLine = [];
      }
      lastLine.push(last);
      return released;
    },
    end() {
      const released = sanitizer.push(removeClaims(lastLine.join("")));
      lastLine = [];
      return released + sanitizer.end();
    },
    get removedClaims() {
      return removedClaims;
    },
  };
}

/** Keeps the space after each sentence, so that joining them restores the line. */
function splitSentences(line: string): string[] {
  return line.split(/(?=\S)(?<=[.!?]["')\]]?\s+)/);
}

/** Whether a sentence presents a figure that does not exist: a number above the last one, or any figure when there is none. English only. */
export function claimsMissingFigure(sentence: string, { length: count }: readonly ArtifactEnvelope[]): boolean {
  if (sentence.length > MAX_SENTENCE_CHARACTERS) return false;
  const claimed = denials.reduce((text, denial) => text.replaceAll(denial, " "), sentence);
  if ([...claimed.matchAll(numbered)].some(([, number]) => Number(number) > count)) return true;
  return count === 0 && figure.test(claimed) && shown.test(claimed);
}

/** A longer text is not a sentence, and the patterns below would be slow. */
const MAX_SENTENCE_CHARACTERS = 2000;

const SHOWS = "(?:show|illustrate|depict|display|visuali[sz]e|reveal|present|demonstrate|highlight)s?\\b";
const DRAWN = "(?:drawn|rendered|created|made|produced|published|generated|plotted|shown|included|attached|provided|displayed)";
const IS_DRAWN = `(?:was|were|has been|have been|is|are) ${DRAWN}`;
/** CHART always means a picture. "figure", "image" and "picture" do only in some contexts: not in "the figure is above 35,000" or "the overall picture". */
const CHART = "(?:chart|plot|graph|diagram|visuali[sz]ation|histogram|heat ?map)s?";
const PLACED = `(?:figure|image|picture)s?(?= (?:below|above|attached))|figure(?= (?:${SHOWS}|${IS_DRAWN}))`;
const POINTED_AT =
  "(?<=\\b(?:see|shown in|seen in|attached|accompanying|following|drawn|drew|created|rendered|generated) (?:(?:an?|the|this|attached|accompanying|following) )?)(?:figure|image|picture)";
const FIGURE = `(?:${CHART}|${PLACED}|${POINTED_AT})\\b`;

const figure = new RegExp(`\\b${FIGURE}`, "i");
/** Figures and charts are counted together, because models mix the two words. "A figure 35 % higher" is not a figure number. */
const numbered = /\b(?:figure|chart) (\d{1,3})\b(?!\s?(?:%|per ?cent|[.,]\d))/gi;
const shown = new RegExp(
  `\\b(?:${SHOWS}|shown|showing|illustrated|depicted|see|seen|below|above|attached|accompanying|here (?:is|are)|here's|i (?:have |'ve )?(?:drew|plotted|${DRAWN})|${IS_DRAWN})\\b`,
  "i",
);

/** Phrases that say a figure does not exist. They are removed before the check; a "not" about anything else does not count. */
const NOT = "(?:\\b(?:not|never|cannot)|n['’]t)";
const NONE = `(?:\\b(?:no|without|neither|nor|unable|fail(?:ed|s)?|missing|instead of)|${NOT})`;
const DRAW = `(?:be|been|able|to|as|draw|render|create|make|produce|publish|generate|plot|show|include|attach|provide|display|see|${DRAWN})`;
const ANY = `(?:${CHART}|(?:figure|image|picture)s?)\\b`;
const ARTICLE = "(?:an?|any|another|the|this|that|your)";
const denials: readonly RegExp[] = [
  // could not draw the requested chart
  new RegExp(`${NONE}(?:\\s+${DRAW}\\b)*(?:\\s+${ARTICLE}\\b)?(?:\\s+(?!${ARTICLE}\\b)[\\w-]+){0,2}?\\s+${ANY}`, "gi"),
  // the chart that was asked for could not be drawn
  new RegExp(
    `\\b${ANY}(?:\\s+(?!${SHOWS})[\\w-]+){0,6}?(?:\\s+(?:missing|unavailable|failed)|\\s+\\w*${NOT}(?:\\s+be(?:en)?)?\\s+(?:${DRAWN}|there|available|possible))\\b`,
    "gi",
  ),
  // a chart would show this better
  new RegExp(`\\b(?:an?|another|any)\\s+(?:[\\w-]+\\s+)?${ANY}\\s+(?:would|could|might|should)\\b`, "gi"),
];
