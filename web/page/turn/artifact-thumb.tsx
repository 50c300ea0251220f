import { memo } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";
import { StoredChart } from "../answer/stored-chart.tsx";

/** Thumbnail of an artifact in the timeline, shown as soon as it exists. */
export const ArtifactThumb = memo(function ArtifactThumb({
  artifact,
  onOpen,
}: {
  artifact: ArtifactReference;
  onOpen(artifact: ArtifactReference): void;
}) {
  const name = artifact.title ?? artifact.alt ?? texts.chart.untitled;
  return (
    <div className="thumb">
      {artifact.kind === "image" ? <Picture artifact={artifact} /> : <StoredChart artifact={artifact} height={200} />}
      <button type="button" className="quiet small" onClick={() => onOpen(artifact)} aria-label={texts.turn.openArtifact(name)}>
        {texts.turn.openPanel}
      </button>
    </div>
  );
});
