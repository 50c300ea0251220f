import { useEffect, useLayoutEffect, useRef, type PointerEvent, type ReactNode } from "react";

interface ZoomPaneProps {
  readonly percent: number;
  readonly label: string;
  onStep(by: number): void;
  readonly children: ReactNode;
}

/** A window on something larger. The middle stays where it is; the mouse drags it, fingers and arrow keys scroll it. */
export function ZoomPane({ percent, label, onStep, children }: ZoomPaneProps) {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(percent);
  useLayoutEffect(() => {
    const pane = box.current;
    const growth = percent / before.current;
    before.current = percent;
    if (!pane || growth === 1) return;
    pane.scrollLeft = (pane.scrollLeft + pane.clientWidth / 2) * growth - pane.clientWidth / 2;
    pane.scrollTop = (pane.scrollTop + pane.clientHeight / 2) * growth - pane.clientHeight / 2;
  }, [percent]);
  useEffect(() => {
    const pane = box.current;
    const turned = (event: WheelEvent): void => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      onStep(event.deltaY < 0 ? 1 : -1);
    };
    // React listens to the wheel without being able to keep the page from zooming.
    pane?.addEventListener("wheel", turned, { passive: false });
    return () => pane?.removeEventListener("wheel", turned);
  }, [onStep]);
  return (
    <div
      ref={box}
      className={percent > 100 ? "zoom-view is-zoomed" : "zoom-view"}
      tabIndex={0}
      role="region"
      aria-label={label}
      {...usePan(percent > 100)}
    >
      <div style={{ width: `${percent}%` }}>{children}</div>
    </div>
  );
}

/** Drags what is scrolled; not a chart's brush, which is dragged itself. */
function usePan(isOn: boolean) {
  const from = useRef<{ x: number; y: number } | null>(null);
  const end = (): void => {
    from.current = null;
  };
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>): void => {
      const isBrush = event.target instanceof Element && event.target.closest(".chart-brush") !== null;
      if (!isOn || isBrush || event.pointerType !== "mouse" || event.button !== 0) return;
      const { scrollLeft, scrollTop } = event.currentTarget;
      from.current = { x: event.clientX + scrollLeft, y: event.clientY + scrollTop };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>): void => {
      if (from.current) event.currentTarget.scrollTo(from.current.x - event.clientX, from.current.y - event.clientY);
    },
    onPointerUp: end,
    onPointerCancel: end,
    onDragStart: (event: { preventDefault(): void }): void => event.preventDefault(),
  };
}
