import { useState, type KeyboardEvent } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import { ChartDrawing } from "../../charts/chart-drawing.tsx";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";
import { ZoomPane } from "./zoom-pane.tsx";

const steps = [100, 150, 200, 300, 400] as const;
const chartHeight = 440;

/** A picture or chart as wide as the panel, and larger: by buttons, by keys, by Ctrl and the wheel. */
export function ArtifactView({ artifact }: { artifact: ArtifactEnvelope }) {
  const [at, setAt] = useState(0);
  const percent = steps[at] ?? 100;
  const change = (by: number): void => setAt((before) => Math.min(steps.length - 1, Math.max(0, before + by)));
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") change(1);
    else if (event.key === "-") change(-1);
    else if (event.key === "0") setAt(0);
  };
  const title = artifact.title ?? (artifact.kind === "image" ? artifact.alt : texts.chart.untitled);
  const pane = { percent, label: title, onStep: change };
  return (
    <div className="zoom" onKeyDown={onKeyDown}>
      <p className="row" role="group" aria-label={texts.panel.zoom}>
        <button type="button" onClick={() => change(-1)} disabled={at === 0} aria-label={texts.panel.zoomOut}>
          −
        </button>
        <output>{texts.panel.zoomed(percent)}</output>
        <button type="button" onClick={() => change(1)} disabled={at === steps.length - 1} aria-label={texts.panel.zoomIn}>
          +
        </button>
        <button type="button" className="quiet" onClick={() => setAt(0)} disabled={at === 0}>
          {texts.panel.zoomFit}
        </button>
        <span className="soft">{percent > 100 && texts.panel.zoomHint}</span>
      </p>
      {artifact.kind === "image" ? (
        <>
          <ZoomPane {...pane}>
            <Picture artifact={artifact} />
          </ZoomPane>
          <p className="soft">{artifact.alt}</p>
        </>
      ) : (
        <figure className="chart">
          <ChartDrawing
            spec={artifact.spec}
            data={artifact.data}
            title={title}
            height={(chartHeight * percent) / 100}
            frame={(plot) => <ZoomPane {...pane}>{plot}</ZoomPane>}
          />
        </figure>
      )}
    </div>
  );
}
