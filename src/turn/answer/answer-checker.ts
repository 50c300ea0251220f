import type { ArtifactEnvelope } from "../../protocol/artifact.ts";

/** Filters an answer line by line while it streams: removes remote images and claims about figures that do not exist. Released text is final. */
export interface AnswerChecker {
  push(text: string): string;
  /** Returns the checked last line. */
  end(): string;
  readonly removedClaims: number;
}

export function createAnswerChecker(artifacts: readonly ArtifactEnvelope[]): AnswerChecker {
  const urls = new Set(artifacts.map(({ url }) => url));
  let lastLine = "";
  let isFenced = false;
  let removedClaims = 0;

  function check(line: string): string {
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced;
    const text = removeRemoteImages(line, urls); // also in code blocks, because a page may delimit them differently
    if (isFenced || /^\s*\|/.test(text)) return text;
    const kept = splitSentences(text).filter((sentence) => !claimsMissingFigure(sentence, artifacts));
    removedClaims += splitSentences(text).length - kept.length;
    return kept.join("");
  }

  return {
    push(text) {
      const lines = (lastLine + text).split("\n");
      lastLine = lines.pop()!;
      return lines.map((line) => `${check(line)}\n`).join("");
    },
    end() {
      const rest = lastLine;
      lastLine = "";
      return check(rest);
    },
    get removedClaims() {
      return removedClaims;
    },
  };
}

/**
 * Removes images and active HTML tags, except images of the turn's own artifacts. Rendering a remote image sends its URL to a foreign server, and a tool
 * output can make the model put data into that URL. The alt text is kept; an incomplete image becomes a link, which shows its URL.
 */
export function removeRemoteImages(text: string, ownUrls: ReadonlySet<string>): string {
  let before = text.replaceAll(KEPT, "");
  // Removing one image can create another, so repeat until nothing changes. Every pass shortens the text.
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const after = removeOnce(before, ownUrls);
    if (after === before) return after.replaceAll(KEPT, "![");
    before = after;
  }
  return removeOnce(before.replaceAll("<", ""), ownUrls).replaceAll(KEPT, "![");
}

/** Deeper nesting is an attack: then all tags are removed. */
const MAX_PASSES = 20;

function removeOnce(text: string, ownUrls: ReadonlySet<string>): string {
  return text
    .replaceAll(activeTag, "")
    .replaceAll(inlineImage, (image, alt: string, url: string) => (ownUrls.has(url) ? image.replace("![", KEPT) : alt))
    .replaceAll(referenceImage, (_image, alt: string) => alt)
    .replaceAll(/!+\[/g, "[");
}

/** Temporarily replaces `![` of own images. Removed from the input first, so that an answer cannot contain it. */
const KEPT = "\u0000";
/** All repetitions are bounded, so that a crafted text cannot make matching slow. A longer image becomes a link. */
const inlineImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\(\s{0,10}<?([^\s()<>]{0,4000})>?[^()]{0,1000}\)/g;
const referenceImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\[[^[\]]{0,1000}\]/g;
const activeTag =
  /<\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|script|input|meta|base|body|form)\b[^>]*>?/gi;

/** Keeps the space after each sentence, so that joining them restores the line. */
function splitSentences(line: string): string[] {
  return line.split(/(?<=[.!?]["')\]]?\s+)(?=\S)/);
}

/** Whether a sentence presents a figure that does not exist: a number above the last one, or any figure when there is none. English only. */
export function claimsMissingFigure(sentence: string, { length: count }: readonly ArtifactEnvelope[]): boolean {
  const claimed = denials.reduce((text, denial) => text.replaceAll(denial, " "), sentence);
  if ([...claimed.matchAll(numbered)].some(([, number]) => Number(number) > count)) return true;
  return count === 0 && figure.test(claimed) && shown.test(claimed);
}

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
