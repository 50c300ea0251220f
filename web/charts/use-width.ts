import { startTransition, useEffect, useState, type RefObject } from "react";

/** The width of an element as it is laid out; 0 before that. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = element.current;
    if (!node) return;
    const observer = new ResizeObserver(([entry]) => {
      const laidOut = Math.floor(entry?.contentRect.width ?? 0);
      // Out of sight it has no width, and keeps its drawing. Drawing a chart takes a while; nobody who types or scrolls has to wait for it.
      if (laidOut > 0) startTransition(() => setWidth(laidOut));
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
