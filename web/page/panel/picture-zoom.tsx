import { useState, type KeyboardEvent } from "react";
import type { ImageArtifact } from "../../../src/protocol/artifact.ts";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";

const steps = [100, 150, 200, 300, 400] as const;

/** 100 % is as wide as the panel; larger ones are scrolled. */
export function PictureZoom({ artifact }: { artifact: ImageArtifact }) {
  const [at, setAt] = useState(0);
  const percent = steps[at] ?? 100;
  const change = (by: number): void => setAt(Math.min(steps.length - 1, Math.max(0, at + by)));
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "+" || event.key === "=") change(1);
    else if (event.key === "-") change(-1);
    else if (event.key === "0") setAt(0);
  };
  return (
    <div className="zoom" onKeyDown={onKeyDown}>
      <p className="row">
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
      </p>
      <div className="zoom-view" tabIndex={0} role="region" aria-label={artifact.title ?? artifact.alt}>
        <div style={{ width: `${percent}%` }}>
          <Picture artifact={artifact} />
        </div>
      </div>
    </div>
  );
}
