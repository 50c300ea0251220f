import { useMemo, useState } from "react";
import type { Range } from "./domains.ts";
import type { Zoom } from "./zoom-bar.tsx";

export interface RangeInView {
  /** First and last visible index along x. */
  readonly range: Range;
  readonly zoom: Zoom;
  set(range: Range): void;
  /** Moves to later positions; a negative number moves to earlier ones. */
  move(by: number): void;
}

const minPlaces = 4;

/** State of the visible x range: everything, until the reader zooms or brushes. */
export function useRange(places: number): RangeInView {
  // Null means everything, also when positions are added.
  const [chosen, setChosen] = useState<Range | null>(null);
  const last = Math.max(0, places - 1);
  const { start, end } = chosen && chosen.end <= last ? chosen : { start: 0, end: last };
  const range = useMemo(() => ({ start, end }), [start, end]);
  const size = end - start + 1;
  const set = (next: Range): void => setChosen(next.start <= 0 && next.end >= last ? null : next);
  const resize = (wanted: number): void => {
    const count = Math.min(places, Math.max(Math.min(minPlaces, places), Math.round(wanted)));
    set(within(Math.round((start + end + 1 - count) / 2), count, last));
  };
  return {
    range,
    set,
    // Moves can arrive faster than they render, so each starts from the previous one.
    move: (by) => setChosen((before) => before && within(before.start + by, before.end - before.start + 1, last)),
    zoom: {
      percent: Math.round((places / Math.max(1, size)) * 100),
      canGrow: size > Math.min(minPlaces, places),
      canShrink: size < places,
      grow: () => resize(size / 2),
      shrink: () => resize(size * 2),
      fit: () => setChosen(null),
    },
  };
}

/** Clamps a range of the given size to the existing positions. */
function within(start: number, count: number, last: number): Range {
  const first = Math.max(0, Math.min(start, last - count + 1));
  return { start: first, end: first + count - 1 };
}
