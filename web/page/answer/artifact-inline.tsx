import { memo } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";
import { artifactName } from "./artifact-name.ts";
import { Picture } from "./picture.tsx";
import { StoredChart } from "./stored-chart.tsx";

interface ArtifactInlineProps {
  readonly artifact: ArtifactReference;
  readonly all: readonly ArtifactReference[];
  onOpen(artifact: ArtifactReference): void;
}

/** A figure or chart inside the answer. */
export const ArtifactInline = memo(function ArtifactInline({ artifact, all, onOpen }: ArtifactInlineProps) {
  const name = artifactName(artifact, all);
  return (
    <div className="artifact" data-artifact={artifact.contentHash}>
      <p className="artifact-head">
        <span className="badge">{name}</span>
        {artifact.kind === "image" && <span className="chart-title">{artifact.title ?? ""}</span>}
        <button type="button" className="quiet small" onClick={() => onOpen(artifact)} aria-label={texts.turn.openArtifact(name)}>
          {texts.turn.openPanel}
        </button>
      </p>
      {artifact.kind === "image" ? <Picture artifact={artifact} /> : <StoredChart artifact={artifact} />}
    </div>
  );
});
