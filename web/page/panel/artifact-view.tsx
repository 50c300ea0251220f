import { useState } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import { ChartDrawing } from "../../charts/chart-drawing.tsx";
import { texts } from "../../texts.ts";
import { PictureZoom } from "./picture-zoom.tsx";

/** Approximate height of the elements above and below the chart. */
const otherHeight = 290;

/** A picture or chart in the panel, with zoom. A chart keeps its axes: zooming shows fewer positions along x. */
export function ArtifactView({ artifact }: { artifact: ArtifactEnvelope }) {
  const [height] = useState(() => Math.max(320, Math.min(680, innerHeight - otherHeight)));
  if (artifact.kind === "image")
    return (
      <>
        <PictureZoom artifact={artifact} />
        <p className="soft">{artifact.alt}</p>
      </>
    );
  return (
    <figure className="chart">
      <ChartDrawing spec={artifact.spec} data={artifact.data} title={artifact.title ?? texts.chart.untitled} height={height} canZoom />
    </figure>
  );
}
