import { startTransition, useEffect, useState, type RefObject } from "react";

/** The width of an element as it is laid out; 0 before that. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const node = element.current;
    if (!node) return;
    const observer = new ResizeObserver(([entry]) => {
      // Drawing a chart takes a while; nobody who types or scrolls has to wait for it.
      startTransition(() => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
