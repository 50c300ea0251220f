import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import { asSentence } from "../describe-error.ts";

/**
 * Returns sentences for the artifacts and gaps that the answer does not mention. A gap counts as mentioned only with its exact sentence, because a similar
 * sentence may say the opposite; stating a gap twice does less harm than omitting it. A sentence that is part of another one is not repeated.
 */
export function findMissingSentences(
  answer: string,
  { artifacts, gaps }: { artifacts: readonly ArtifactEnvelope[]; gaps: readonly Gap[] },
): string[] {
  const answerWords = toWords(answer);
  const missing = [
    ...labelArtifacts(artifacts)
      .filter((artifact) => !mentions(answer, artifact))
      .map(({ label, description }) => `${label}: ${asSentence(description)}`),
    ...gaps.filter(({ detail }) => !answerWords.includes(toWords(detail))).map(({ detail }) => asSentence(detail)),
  ];
  const isPart = (sentence: string): boolean => missing.some((other) => other.length > sentence.length && other.includes(sentence));
  return [...new Set(missing)].filter((sentence) => !isPart(sentence));
}

function mentions(answer: string, { label, artifact }: LabelledArtifact): boolean {
  return new RegExp(`\\b${label}\\b`, "i").test(answer) || answer.includes(artifact.url) || answer.includes(artifact.contentHash);
}

/** Only the words, in lower case: without Markdown, quotes, line breaks and punctuation. */
function toWords(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return ` ${words.join(" ")} `;
}

export interface LabelledArtifact {
  /** The name in the answer: `Figure 1`, `Chart 1`. */
  readonly label: string;
  /** The title; without one, the alt text or the columns. */
  readonly description: string;
  readonly artifact: ArtifactEnvelope;
}

export function labelArtifacts(artifacts: readonly ArtifactEnvelope[]): LabelledArtifact[] {
  const counts = { image: 0, chart: 0 };
  return artifacts.map((artifact) => {
    counts[artifact.kind] += 1;
    const label = `${artifact.kind === "image" ? "Figure" : "Chart"} ${counts[artifact.kind]}`;
    const description =
      artifact.title ??
      (artifact.kind === "image"
        ? artifact.alt
        : `${artifact.spec.type} chart of ${artifact.spec.series.map(({ key }) => key).join(", ")}`);
    return { label, description, artifact };
  });
}
