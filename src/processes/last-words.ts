import { constants } from "node:os";
import type { Readable } from "node:stream";

const KEPT_CHARACTERS = 8 * 1024;

/** Reads a stream to its end and keeps its last 8 KB, which the returned function gives. */
export function keepTail(stream: Readable): () => string {
  let tail = "";
  stream.setEncoding("utf8");
  stream.on("error", () => {});
  stream.on("data", (text: string) => {
    tail = (tail + text).slice(-KEPT_CHARACTERS);
  });
  return () => tail.trim();
}

/** Null for a number that no signal has. Of two names, the first is the one that people know (SIGABRT, not SIGIOT). */
export function signalName(number: number): string | null {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;
}
