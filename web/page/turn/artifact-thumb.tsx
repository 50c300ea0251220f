import { memo } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import { ChartView } from "../../charts/chart-view.tsx";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";

/** Thumbnail of an artifact in the timeline, shown as soon as it exists. */
export const ArtifactThumb = memo(function ArtifactThumb({
  artifact,
  onOpen,
}: {
  artifact: ArtifactEnvelope;
  onOpen(artifact: ArtifactEnvelope): void;
}) {
  const name = artifact.title ?? (artifact.kind === "image" ? artifact.alt : texts.chart.untitled);
  return (
    <div className="thumb">
      {artifact.kind === "image" ? (
        <Picture artifact={artifact} />
      ) : (
        <ChartView spec={artifact.spec} data={artifact.data} title={artifact.title} height={200} />
      )}
      <button type="button" className="quiet small" onClick={() => onOpen(artifact)} aria-label={texts.turn.openArtifact(name)}>
        {texts.turn.openPanel}
      </button>
    </div>
  );
});
