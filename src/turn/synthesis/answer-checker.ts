import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import { claimsMissingFigure } from "./claims-missing-figure.ts";
import { removeRemoteImages } from "./remove-remote-images.ts";

/** Lets an answer through line by line, without what it may not say. What has gone through is never taken back. */
export interface AnswerChecker {
  push(text: string): string;
  /** The rest. */
  end(): string;
  readonly removedClaims: number;
}

export function createAnswerChecker(artifacts: readonly ArtifactEnvelope[]): AnswerChecker {
  const urls = new Set(artifacts.map(({ url }) => url));
  let held = "";
  let isFenced = false;
  let removedClaims = 0;

  function check(line: string): string {
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced;
    const text = removeRemoteImages(line, urls); // in code, too: what a page takes for code is the page's affair
    if (isFenced || /^\s*\|/.test(text)) return text;
    const kept = splitSentences(text).filter((sentence) => !claimsMissingFigure(sentence, artifacts));
    removedClaims += splitSentences(text).length - kept.length;
    return kept.join("");
  }

  return {
    push(text) {
      const lines = (held + text).split("\n");
      held = lines.pop()!;
      return lines.map((line) => `${check(line)}\n`).join("");
    },
    end() {
      const rest = held;
      held = "";
      return check(rest);
    },
    get removedClaims() {
      return removedClaims;
    },
  };
}

/** Each with the space behind it, so that joined they are the line. */
function splitSentences(line: string): string[] {
  return line.split(/(?<=[.!?]["')\]]?\s+)(?=\S)/);
}
