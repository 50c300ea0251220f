import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import { labelArtifacts, type LabelledArtifact } from "./label-artifacts.ts";

/** What the answer should have said and did not: every artifact and every gap, as sentences to be added. */
export function missingSentences(
  answer: string,
  { artifacts, gaps }: { artifacts: readonly ArtifactEnvelope[]; gaps: readonly Gap[] },
): string[] {
  return [
    ...labelArtifacts(artifacts)
      .filter((artifact) => !speaksOf(answer, artifact))
      .map(({ label, words }) => `${label}: ${asSentence(words)}`),
    ...gaps.filter((gap) => !saysGap(answer, gap)).map(({ detail }) => asSentence(detail)),
  ];
}

function speaksOf(answer: string, { label, artifact, words }: LabelledArtifact): boolean {
  const said = answer.toLowerCase();
  const alt = artifact.kind === "image" ? artifact.alt : "";
  const names = [label, words, alt, artifact.url, artifact.contentHash].filter((name) => name !== "");
  return names.some((name) => new RegExp(`(?<![\\w])${RegExp.escape(name.toLowerCase())}(?![\\w])`).test(said));
}

const SHARE = 0.6;

/** It is said when most of its own words stand together in one paragraph. Said twice does less harm than not said. */
function saysGap(answer: string, { detail, code }: Gap): boolean {
  if (answer.includes(detail) || answer.includes(code)) return true;
  const words = wordsOf(detail);
  if (words.size === 0) return false;
  return answer.split(/\n\s*\n/).some((paragraph) => {
    const said = wordsOf(paragraph);
    return [...words].filter((word) => said.has(word)).length / words.size >= SHARE;
  });
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}_]{4,}/gu) ?? []);
}

function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
