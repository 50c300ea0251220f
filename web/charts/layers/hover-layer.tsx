import { useEffect, useMemo, useRef, useState, type PointerEvent, type RefObject } from "react";
import { createPortal } from "react-dom";
import { usePlotArea, useXAxisScale, useYAxisScale } from "recharts";
import { ChartTooltip } from "../chart-tooltip.tsx";
import type { Range } from "../domains.ts";
import { findTarget } from "../find-target.ts";
import { colourOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import { readingsAt, type Target } from "../readings.ts";
import type { Stacked } from "../stack.ts";
import type { Scales } from "./scales.ts";

export type KeyReader = (key: string) => boolean;

interface HoverLayerProps {
  readonly plot: Plot;
  readonly stacked: readonly Stacked[];
  readonly range: Range;
  /** Where the words go: HTML beside the drawing. */
  readonly host: HTMLElement | null;
  readonly keys: RefObject<KeyReader | null>;
}

/** The pointer's and the keyboard's place in the chart. Its state is its own, so that nothing else is drawn again while it moves. */
export function HoverLayer({ plot, stacked, range, host, keys }: HoverLayerProps) {
  const [target, setTarget] = useState<Target | null>(null);
  const [byKey, setByKey] = useState(false);
  const area = usePlotArea();
  const [scaleX, left, right] = [useXAxisScale(0), useYAxisScale("left"), useYAxisScale("right")];
  const frame = useRef(0);
  const mark = useRef<SVGGElement>(null);
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
      const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : null;
      if (key === "Escape" && target) {
        setTarget(null);
        return true;
      }
      if (step === null && key !== "Home" && key !== "End") return false;
      setByKey(true);
      const at = target?.index ?? (step === -1 ? range.end + 1 : range.start - 1);
      const next = key === "Home" ? range.start : key === "End" ? range.end : at + (step ?? 0);
      setTarget({ index: Math.min(range.end, Math.max(range.start, next)) });
      return true;
    };
    return () => {
      keys.current = null;
    };
  }, [keys, range, target]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  // What is read by key is in sight, also in a chart that is larger than its window.
  useEffect(() => {
    if (byKey && target) mark.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [byKey, target]);

  if (!area || !host) return null;
  const follow = (event: PointerEvent<SVGRectElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = { x: event.clientX - box.left + area.x, y: event.clientY - box.top + area.y };
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      setByKey(false);
      setTarget(findTarget(plot, visible, range, scalesOf, at));
    });
  };
  const leave = (): void => {
    cancelAnimationFrame(frame.current);
    setTarget(null);
  };
  const shown = target && target.index <= range.end ? target : null;
  const place = shown ? placeOf(plot, shown, stacked, scalesOf) : null;
  return (
    <g>
      <g ref={mark}>
        {place && !plot.heat && <line x1={place.x} x2={place.x} y1={area.y} y2={area.y + area.height} className="chart-cursor" />}
        {place?.dots.map(({ y, colour, key }) => (
          <circle key={key} cx={place.x} cy={y} r={4} className="chart-active" style={{ fill: colourOf(colour) }} />
        ))}
        {place?.cell && <rect {...place.cell} className="chart-cell" />}
      </g>
      <rect
        x={area.x}
        y={area.y}
        width={area.width}
        height={area.height}
        fill="transparent"
        onPointerMove={follow}
        onPointerDown={follow}
        onPointerLeave={leave}
        data-hover
      />
      {shown && place && createPortal(<ChartTooltip {...readingsAt(plot, visible, shown)} x={place.x} y={area.y} isSpoken={byKey} />, host)}
    </g>
  );
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
