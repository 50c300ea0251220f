import { useEffect, useMemo, useRef, useState, type PointerEvent, type RefObject } from "react";
import { createPortal } from "react-dom";
import { usePlotArea, useXAxisScale, useYAxisScale } from "recharts";
import { ChartTooltip } from "../chart-tooltip.tsx";
import { findTarget } from "../find-target.ts";
import { colourOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import { readingsAt, type Target } from "../readings.ts";
import type { Stacked } from "../stack.ts";
import type { RangeInView } from "../use-range.ts";
import type { Scales } from "./scales.ts";

export type KeyReader = (key: string) => boolean;

interface HoverLayerProps {
  readonly plot: Plot;
  readonly stacked: readonly Stacked[];
  readonly inView: RangeInView;
  /** Element for cursor and tooltip. It lies over the drawing, so that the drawing is not repainted. */
  readonly host: HTMLElement | null;
  readonly keys: RefObject<KeyReader | null>;
}

/** Tracks the pointer's and the keyboard's position. It has its own state, so that nothing else renders while it moves. */
export function HoverLayer({ plot, stacked, inView, host, keys }: HoverLayerProps) {
  const [target, setTarget] = useState<Target | null>(null);
  const [byKey, setByKey] = useState(false);
  const { range, move } = inView;
  const area = usePlotArea();
  const [scaleX, left, right] = [useXAxisScale(0), useYAxisScale("left"), useYAxisScale("right")];
  const frame = useRef(0);
  const dragged = useRef<{ x: number; places: number } | null>(null);
  const scalesOf = useMemo(
    () =>
      (side: "left" | "right"): Scales | null => {
        const y = side === "left" ? left : right;
        return scaleX && y ? { x: (value) => scaleX(value) ?? 0, y: (value) => y(value) ?? 0 } : null;
      },
    [scaleX, left, right],
  );
  const visible = useMemo(() => stacked.map(({ series }) => series), [stacked]);

  useEffect(() => {
    keys.current = (key) => {
      if (key === "Escape" && target) {
        setTarget(null);
        return true;
      }
      const index = nextIndex(plot, range, key, target);
      if (index === null) return false;
      setByKey(true);
      setTarget({ index });
      // Scroll the visible range so that the current value stays in view.
      const place = placeAlong(plot, index);
      if (place < range.start || place > range.end) move(place < range.start ? place - range.start : place - range.end);
      return true;
    };
    return () => {
      keys.current = null;
    };
  }, [keys, plot, range, move, target]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  if (!area || !host) return null;
  const follow = (event: PointerEvent<SVGRectElement>): void => {
    if (dragged.current) return drag(dragged.current, event.clientX);
    const box = event.currentTarget.getBoundingClientRect();
    const at = { x: event.clientX - box.left + area.x, y: event.clientY - box.top + area.y };
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      setByKey(false);
      setTarget(findTarget(plot, visible, range, scalesOf, at));
    });
  };
  const drag = (from: { x: number; places: number }, x: number): void => {
    const places = Math.round(((from.x - x) / area.width) * (range.end - range.start + 1));
    if (places !== from.places) move(places - from.places);
    from.places = places;
  };
  const press = (event: PointerEvent<SVGRectElement>): void => {
    follow(event);
    if (!inView.zoom.canShrink || event.pointerType !== "mouse" || event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    dragged.current = { x: event.clientX, places: 0 };
  };
  const release = (): void => {
    dragged.current = null;
  };
  const leave = (): void => {
    cancelAnimationFrame(frame.current);
    setTarget(null);
  };
  const along = target ? placeAlong(plot, target.index) : -1;
  const shown = target && along >= range.start && along <= range.end ? target : null;
  const place = shown ? placeOf(plot, shown, stacked, scalesOf) : null;
  const cursor = shown && place && (
    <>
      <svg width="100%" height="100%" aria-hidden>
        {!plot.heat && <line x1={place.x} x2={place.x} y1={area.y} y2={area.y + area.height} className="chart-cursor" />}
        {place.dots.map(({ y, colour, key }) => (
          <circle key={key} cx={place.x} cy={y} r={4} className="chart-active" style={{ fill: colourOf(colour) }} />
        ))}
        {place.cell && <rect {...place.cell} className="chart-cell" />}
      </svg>
      <ChartTooltip {...readingsAt(plot, visible, shown)} x={place.x} y={area.y} isSpoken={byKey} />
    </>
  );
  return (
    <>
      <rect
        x={area.x}
        y={area.y}
        width={area.width}
        height={area.height}
        fill="transparent"
        className={inView.zoom.canShrink ? "chart-movable" : undefined}
        onPointerMove={follow}
        onPointerDown={press}
        onPointerUp={release}
        onPointerCancel={release}
        onPointerLeave={leave}
        data-hover
      />
      {createPortal(cursor, host)}
    </>
  );
}

/** X position of a row; for a heatmap cell, its column. */
function placeAlong(plot: Plot, index: number): number {
  return plot.heat?.cells[index]?.column ?? index;
}

function nextIndex(plot: Plot, { start, end }: RangeInView["range"], key: string, target: Target | null): number | null {
  const [first, last] = plot.heat ? [0, plot.heat.cells.length - 1] : [start, end];
  if (key === "Home") return first;
  if (key === "End") return last;
  const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return null;
  const at = target?.index ?? (step > 0 ? first - 1 : last + 1);
  return Math.min(plot.rows.length - 1, Math.max(0, at + step));
}

interface Place {
  readonly x: number;
  readonly dots: readonly { readonly y: number; readonly colour: number; readonly key: string }[];
  readonly cell?: { x: number; y: number; width: number; height: number };
}

function placeOf(
  plot: Plot,
  { index, series: only }: Target,
  stacked: readonly Stacked[],
  scalesOf: (side: "left" | "right") => Scales | null,
): Place | null {
  const any = scalesOf("left") ?? scalesOf("right");
  if (!any) return null;
  const cell = plot.heat?.cells[index];
  if (cell) {
    const [x, y] = [any.x(cell.column - 0.5), any.y(cell.row - 0.5)];
    return { x: any.x(cell.column), dots: [], cell: { x, y, width: any.x(cell.column + 0.5) - x, height: any.y(cell.row + 0.5) - y } };
  }
  const shift = plot.type === "histogram" && plot.x.kind !== "category" ? plot.x.step / 2 : 0;
  const dots = stacked.flatMap(({ series, to }) => {
    const value = to[index];
    const y = scalesOf(series.side)?.y(value ?? 0);
    const isOut = series.mark === "bar" || value == null || y === undefined || (only && only.key !== series.key);
    return isOut ? [] : [{ y, colour: series.colour, key: series.key }];
  });
  return { x: any.x((plot.x.values[index] ?? 0) + shift), dots };
}
