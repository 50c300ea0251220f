import { useEffect, useRef, type KeyboardEvent, type ReactNode } from "react";
import { texts } from "../texts.ts";

export interface Zoom {
  readonly percent: number;
  readonly canGrow: boolean;
  readonly canShrink: boolean;
  grow(): void;
  shrink(): void;
  fit(): void;
}

/** Wheel distance of one zoom step. A trackpad sends many small distances. */
const wheelStep = 50;

/** Zoom controls: buttons, keys, and the wheel with Ctrl. */
export function ZoomBar({ zoom, children }: { zoom: Zoom; children: ReactNode }) {
  const { percent, canGrow, canShrink } = zoom;
  const box = useRef<HTMLDivElement>(null);
  const turned = useRef(0);
  useEffect(() => {
    const node = box.current;
    const turn = (event: WheelEvent): void => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      turned.current += event.deltaY;
      if (Math.abs(turned.current) < wheelStep) return;
      if (turned.current < 0 && canGrow) zoom.grow();
      else if (turned.current > 0 && canShrink) zoom.shrink();
      turned.current = 0;
    };
    // React's wheel listener is passive and cannot stop the page from zooming.
    node?.addEventListener("wheel", turn, { passive: false });
    return () => node?.removeEventListener("wheel", turn);
  }, [zoom, canGrow, canShrink]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "+" || event.key === "=") && canGrow) zoom.grow();
    else if (event.key === "-" && canShrink) zoom.shrink();
    else if (event.key === "0") zoom.fit();
  };
  return (
    <div ref={box} className="zoom" onKeyDown={onKeyDown}>
      <div className="zoom-bar" role="group" aria-label={texts.chart.zoom}>
        <button type="button" onClick={zoom.shrink} disabled={!canShrink} aria-label={texts.chart.zoomOut}>
          −
        </button>
        <output>{texts.chart.zoomed(percent)}</output>
        <button type="button" onClick={zoom.grow} disabled={!canGrow} aria-label={texts.chart.zoomIn}>
          +
        </button>
        <button type="button" className="quiet" onClick={zoom.fit} disabled={!canShrink}>
          {texts.chart.zoomFit}
        </button>
        {canShrink && <span className="zoom-hint">{texts.chart.zoomHint}</span>}
      </div>
      {children}
    </div>
  );
}
