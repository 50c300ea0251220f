import { startTransition, useEffect, useState, type RefObject } from "react";

/** Width of an element after layout; 0 before. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = element.current;
    if (!node) return;
    const observer = new ResizeObserver(([entry]) => {
      const laidOut = Math.floor(entry?.contentRect.width ?? 0);
      // A hidden element has no width and keeps its drawing. Drawing runs as a transition, so that typing and scrolling do not wait for it.
      if (laidOut > 0) startTransition(() => setWidth(laidOut));
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
