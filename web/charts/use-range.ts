import { useMemo, useState } from "react";
import type { Range } from "./domains.ts";
import type { Zoom } from "./zoom-bar.tsx";

export interface RangeInView {
  /** The first and last place along x that are in view. */
  readonly range: Range;
  readonly zoom: Zoom;
  set(range: Range): void;
  /** To later places, or to earlier ones when it is negative. */
  move(by: number): void;
}

const fewest = 4;

/** Which of a chart's places along x are in view: all of them, until someone zooms or brushes. */
export function useRange(places: number): RangeInView {
  // Null is everything, also when places are added.
  const [chosen, setChosen] = useState<Range | null>(null);
  const last = Math.max(0, places - 1);
  const { start, end } = chosen && chosen.end <= last ? chosen : { start: 0, end: last };
  const range = useMemo(() => ({ start, end }), [start, end]);
  const size = end - start + 1;
  const set = (next: Range): void => setChosen(next.start <= 0 && next.end >= last ? null : next);
  const resize = (wanted: number): void => {
    const count = Math.min(places, Math.max(Math.min(fewest, places), Math.round(wanted)));
    set(within(Math.round((start + end + 1 - count) / 2), count, last));
  };
  return {
    range,
    set,
    // Moves may come faster than they are drawn: each starts from the one before.
    move: (by) => setChosen((before) => before && within(before.start + by, before.end - before.start + 1, last)),
    zoom: {
      percent: Math.round((places / Math.max(1, size)) * 100),
      canGrow: size > Math.min(fewest, places),
      canShrink: size < places,
      grow: () => resize(size / 2),
      shrink: () => resize(size * 2),
      fit: () => setChosen(null),
    },
  };
}

/** As many places as are wanted, from where they are wanted as far as there are any. */
function within(start: number, count: number, last: number): Range {
  const first = Math.max(0, Math.min(start, last - count + 1));
  return { start: first, end: first + count - 1 };
}
