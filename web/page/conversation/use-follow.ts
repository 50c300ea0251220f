import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

/** Keeps the end in sight while things are added, unless the reader has scrolled away from it. */
export function useFollow(list: RefObject<HTMLElement | null>, news: unknown): { isBehind: boolean; jump(): void } {
  const isAtEnd = useRef(true);
  const [isBehind, setIsBehind] = useState(false);
  useEffect(() => {
    const node = list.current;
    if (!node) return;
    const look = (): void => {
      isAtEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < 120;
      setIsBehind(!isAtEnd.current);
    };
    node.addEventListener("scroll", look, { passive: true });
    return () => node.removeEventListener("scroll", look);
  }, [list]);
  useEffect(() => {
    const node = list.current;
    if (node && isAtEnd.current) node.scrollTop = node.scrollHeight;
  }, [list, news]);
  const jump = useCallback(() => list.current?.scrollTo({ top: list.current.scrollHeight }), [list]);
  return { isBehind, jump };
}
