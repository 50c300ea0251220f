import type { ToolOutput } from "../contract.ts";
import { isObject } from "../mcp-result.ts";

/** From here on an output is read in a thread. Below, reading it takes a few milliseconds, and less than starting the thread. */
export const LARGE_BYTES: number = 512 * 1024;

/** Whether text in it is large. Of values that came parsed see `isLargeValue`: to hand one to a thread takes as long as to write it as JSON. */
export function isLargeOutput({ output, structuredJson = "" }: ToolOutput): boolean {
  if (typeof output === "string") return output.length >= LARGE_BYTES;
  if (structuredJson.length >= LARGE_BYTES) return true;
  if (!isObject(output) || !Array.isArray(output["content"])) return false;
  return output["content"].slice(0, 1000).reduce<number>((sum, part) => sum + charactersOf(part), 0) >= LARGE_BYTES;
}

function charactersOf(part: unknown): number {
  if (!isObject(part)) return 0;
  const { text, data, resource } = part;
  return lengthOf(text) + lengthOf(data) + (isObject(resource) ? lengthOf(resource["text"]) + lengthOf(resource["blob"]) : 0);
}

function lengthOf(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
