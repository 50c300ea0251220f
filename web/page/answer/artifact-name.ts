import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";

/** Figures and charts have separate numbers, as in the answers. */
export function artifactName({ kind, contentHash }: ArtifactReference, all: readonly ArtifactReference[]): string {
  const number = all.filter((other) => other.kind === kind).findIndex((other) => other.contentHash === contentHash) + 1;
  return kind === "image" ? texts.turn.figure(number) : texts.turn.chart(number);
}
