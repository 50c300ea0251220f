import type { ArtifactEnvelope } from "../../protocol/artifact.ts";

const figure = /\b(?:figure|chart|plot|graph|diagram|image|picture|visuali[sz]ation|histogram|heat ?map)s?\b/i;
const shown =
  /\b(?:shows?|shown|showing|illustrat\w+|depict\w*|displays?|visuali[sz]es?|see|below|above|attached|accompanying|here (?:is|are)|here's|i (?:have |'ve )?(?:drew|drawn|plotted|created|made|rendered|generated)|(?:was|were|has been|have been|is|are) (?:drawn|rendered|published|created|generated|plotted|included|attached))\b/i;
const denied = /\b(?:no|not|never|without|cannot|failed|fails|missing|unable|none|neither|nor|instead of|would|could|should)\b|n['’]t\b/i;

/** Whether a sentence speaks of a figure as if it were there, and it is not: a number past the last one, or any at all when there is none. */
export function claimsMissingFigure(sentence: string, artifacts: readonly ArtifactEnvelope[]): boolean {
  if (denied.test(sentence)) return false;
  if (artifacts.length === 0) return figure.test(sentence) && shown.test(sentence);
  return [...sentence.matchAll(/\b(figure|chart) (\d{1,3})\b/gi)].some(([, kind, number]) => Number(number) > countOf(kind!, artifacts));
}

function countOf(kind: string, artifacts: readonly ArtifactEnvelope[]): number {
  const wanted = kind.toLowerCase() === "chart" ? "chart" : "image";
  return artifacts.filter((artifact) => artifact.kind === wanted).length;
}
