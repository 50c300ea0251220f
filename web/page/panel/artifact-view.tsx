import { useState } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { ChartDrawing } from "../../charts/chart-drawing.tsx";
import { texts } from "../../texts.ts";
import { useArtifactData } from "../answer/use-artifact-data.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { PictureZoom } from "./picture-zoom.tsx";

/** Approximate height of the elements above and below the chart. */
const otherHeight = 290;

/** A picture or chart in the panel, with zoom. A chart keeps its axes: zooming shows fewer positions along x. */
export function ArtifactView({ artifact }: { artifact: ArtifactReference }) {
  if (artifact.kind === "image")
    return (
      <>
        <PictureZoom artifact={artifact} />
        <p className="soft">{artifact.alt}</p>
      </>
    );
  return <LargeChart artifact={artifact} />;
}

function LargeChart({ artifact }: { artifact: ArtifactReference }) {
  const [height] = useState(() => Math.max(320, Math.min(680, innerHeight - otherHeight)));
  const loaded = useArtifactData(artifact);
  if (loaded.state === "failed") return <FailureNotice error={loaded.error} />;
  if (loaded.state === "loading" || loaded.value.kind !== "chart") return <p role="status">{texts.conversation.loading}</p>;
  const { spec, data } = loaded.value;
  return (
    <figure className="chart">
      <ChartDrawing spec={spec} data={data} title={artifact.title ?? texts.chart.untitled} height={height} canZoom />
    </figure>
  );
}
