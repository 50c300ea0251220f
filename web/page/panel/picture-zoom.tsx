import { useLayoutEffect, useRef, useState, type PointerEvent } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { ZoomBar } from "../../charts/zoom-bar.tsx";
import { Picture } from "../answer/picture.tsx";

const steps = [100, 150, 200, 300, 400] as const;

/** Zooms a picture. 100 % is the panel's width; a larger picture can be dragged or scrolled, and zooming keeps its centre. */
export function PictureZoom({ artifact }: { artifact: ArtifactReference }) {
  const [at, setAt] = useState(0);
  const percent = steps[at] ?? 100;
  const pane = useRef<HTMLDivElement>(null);
  const before = useRef(percent);
  const step = (by: number): void => setAt((now) => Math.min(steps.length - 1, Math.max(0, now + by)));
  useLayoutEffect(() => {
    const [box, growth] = [pane.current, percent / before.current];
    before.current = percent;
    box?.scrollTo(
      (box.scrollLeft + box.clientWidth / 2) * growth - box.clientWidth / 2,
      (box.scrollTop + box.clientHeight / 2) * growth - box.clientHeight / 2,
    );
  }, [percent]);
  const zoom = {
    percent,
    canGrow: at < steps.length - 1,
    canShrink: at > 0,
    grow: () => step(1),
    shrink: () => step(-1),
    fit: () => setAt(0),
  };
  return (
    <ZoomBar zoom={zoom}>
      <div
        ref={pane}
        className={at > 0 ? "zoom-view is-zoomed" : "zoom-view"}
        tabIndex={0}
        role="region"
        aria-label={artifact.title ?? artifact.alt}
        {...usePan()}
      >
        <div style={{ width: `${percent}%` }}>
          <Picture artifact={artifact} />
        </div>
      </div>
    </ZoomBar>
  );
}

/** Lets the mouse drag the picture; touch scrolls it. */
function usePan() {
  const from = useRef<{ x: number; y: number } | null>(null);
  const end = (): void => {
    from.current = null;
  };
  return {
    onPointerDown: ({ currentTarget: box, pointerType, button, clientX, clientY, pointerId }: PointerEvent<HTMLElement>): void => {
      if (pointerType !== "mouse" || button !== 0) return;
      from.current = { x: clientX + box.scrollLeft, y: clientY + box.scrollTop };
      box.setPointerCapture(pointerId);
    },
    onPointerMove: ({ currentTarget: box, clientX, clientY }: PointerEvent<HTMLElement>): void => {
      if (from.current) box.scrollTo(from.current.x - clientX, from.current.y - clientY);
    },
    onPointerUp: end,
    onPointerCancel: end,
    onDragStart: (event: { preventDefault(): void }): void => event.preventDefault(),
  };
}
