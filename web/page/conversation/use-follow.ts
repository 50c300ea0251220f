import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

/**
 * Keeps the end in view while a turn runs, unless the reader has scrolled away. When the turn ends, scrolls its question to the top, so
 * that the reader sees the beginning of the answer.
 */
export function useFollow(list: RefObject<HTMLElement | null>, news: unknown, isRunning: boolean): { isBehind: boolean; jump(): void } {
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
  const wasRunning = useRef(false);
  useEffect(() => {
    const node = list.current;
    const hasEnded = wasRunning.current && !isRunning;
    wasRunning.current = isRunning;
    if (!node || !hasEnded || !isAtEnd.current) return;
    const question = [...node.querySelectorAll<HTMLElement>(".question")].at(-1);
    isAtEnd.current = false;
    if (question) node.scrollTop = question.offsetTop - node.offsetTop - 14;
  }, [list, isRunning]);
  const jump = useCallback(() => list.current?.scrollTo({ top: list.current.scrollHeight }), [list]);
  return { isBehind, jump };
}
