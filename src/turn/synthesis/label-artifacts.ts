import type { ArtifactEnvelope } from "../../protocol/artifact.ts";

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
