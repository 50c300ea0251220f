import { useRef, type KeyboardEvent, type PointerEvent } from "react";
import { usePlotArea } from "recharts";
import { texts } from "../../texts.ts";
import type { Range } from "../domains.ts";
import type { RangeInView } from "../use-range.ts";

interface BrushLayerProps {
  readonly inView: RangeInView;
  readonly places: number;
  readonly top: number;
  /** Label of a position on x. */
  readonly labelAt: (place: number) => string;
}

type Part = "start" | "end" | "window";

export const brushHeight = 22;
const handleWidth = 9;

/** Shows the whole x range as a bar with the visible part on it. Both ends and the part between can be dragged or moved by keys. */
export function BrushLayer({ inView, places, top, labelAt }: BrushLayerProps) {
  const area = usePlotArea();
  const drag = useRef<{ readonly x: number; readonly from: Range } | null>(null);
  if (!area) return null;
  const { range, set } = inView;
  const last = places - 1;
  const unit = area.width / places;
  const [left, right] = [area.x + range.start * unit, area.x + (range.end + 1) * unit];
  const handlers = (part: Part) => ({
    onPointerDown: (event: PointerEvent<SVGElement>): void => {
      drag.current = { x: event.clientX, from: range };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent<SVGElement>): void => {
      if (drag.current) set(shift(drag.current.from, part, Math.round((event.clientX - drag.current.x) / unit), last));
    },
    onPointerUp: (): void => {
      drag.current = null;
    },
  });
  const onKeyDown = (part: "start" | "end", event: KeyboardEvent): void => {
    const step = stepOf(event.key, last);
    if (step === null) return;
    event.preventDefault();
    set(shift(range, part, step, last));
  };
  return (
    <g className="chart-brush" role="group" aria-label={texts.chart.range}>
      <rect x={area.x} y={top} width={area.width} height={brushHeight} className="chart-brush-track" />
      <rect x={left} y={top} width={right - left} height={brushHeight} className="chart-brush-window" {...handlers("window")} />
      {(["start", "end"] as const).map((part) => (
        <rect
          key={part}
          role="slider"
          tabIndex={0}
          aria-label={texts.chart.rangeEnds[part]}
          aria-valuemin={0}
          aria-valuemax={last}
          aria-valuenow={range[part]}
          aria-valuetext={labelAt(range[part])}
          x={part === "start" ? left - handleWidth / 2 : right - handleWidth / 2}
          y={top}
          width={handleWidth}
          height={brushHeight}
          rx={2}
          className="chart-brush-handle"
          onKeyDown={(event) => onKeyDown(part, event)}
          {...handlers(part)}
        />
      ))}
    </g>
  );
}

function stepOf(key: string, last: number): number | null {
  if (key === "ArrowRight") return 1;
  if (key === "ArrowLeft") return -1;
  if (key === "PageUp") return Math.ceil(last / 10);
  if (key === "PageDown") return -Math.ceil(last / 10);
  return key === "Home" ? -last : key === "End" ? last : null;
}

/** Keeps both ends in order and inside the bar. */
function shift({ start, end }: Range, part: Part, by: number, last: number): Range {
  if (part === "start") return { start: Math.max(0, Math.min(end, start + by)), end };
  if (part === "end") return { start, end: Math.min(last, Math.max(start, end + by)) };
  const allowed = Math.max(-start, Math.min(last - end, by));
  return { start: start + allowed, end: end + allowed };
}
