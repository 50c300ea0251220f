import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import { asSentence } from "../describe-error.ts";

/**
 * What the answer should have said and did not: every artifact by its label, every gap by its sentence. Only a gap's own sentence counts: what sounds like
 * it may say the opposite. The model is told so, and said twice does less harm than not said. What stands in another of them as a whole is not said by itself.
 */
export function missingSentences(
  answer: string,
  { artifacts, gaps }: { artifacts: readonly ArtifactEnvelope[]; gaps: readonly Gap[] },
): string[] {
  const said = toPlain(answer);
  const missing = [
    ...labelArtifacts(artifacts)
      .filter((artifact) => !speaksOf(answer, artifact))
      .map(({ label, words }) => `${label}: ${asSentence(words)}`),
    ...gaps.filter(({ detail }) => !said.includes(toPlain(detail))).map(({ detail }) => asSentence(detail)),
  ];
  const isPart = (sentence: string): boolean => missing.some((other) => other.length > sentence.length && other.includes(sentence));
  return [...new Set(missing)].filter((sentence) => !isPart(sentence));
}

function speaksOf(answer: string, { label, artifact }: LabelledArtifact): boolean {
  return new RegExp(`\\b${label}\\b`, "i").test(answer) || answer.includes(artifact.url) || answer.includes(artifact.contentHash);
}

/** Without marks of Markdown, quotes, line ends and what ends a sentence: the words in their order. */
function toPlain(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return ` ${words.join(" ")} `;
}

export interface LabelledArtifact {
  /** `Figure 1`, `Chart 1`: how an answer speaks of it. */
  readonly label: string;
  /** Its title, else what it shows. */
  readonly words: string;
  readonly artifact: ArtifactEnvelope;
}

export function labelArtifacts(artifacts: readonly ArtifactEnvelope[]): LabelledArtifact[] {
  const counts = { image: 0, chart: 0 };
  return artifacts.map((artifact) => {
    counts[artifact.kind] += 1;
    const label = `${artifact.kind === "image" ? "Figure" : "Chart"} ${counts[artifact.kind]}`;
    const words =
      artifact.title ??
      (artifact.kind === "image"
        ? artifact.alt
        : `${artifact.spec.type} chart of ${artifact.spec.series.map(({ key }) => key).join(", ")}`);
    return { label, words, artifact };
  });
}
