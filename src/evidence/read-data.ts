import type { NamedData } from "./contract.ts";
import type { OutputPart } from "./output-part.ts";
import { readText } from "./read-text.ts";

/** Data in the format that it was said to have. */
export function readData({ format, bytes, mimeType }: Pick<NamedData, "format" | "bytes" | "mimeType">): OutputPart {
  const named = mimeType === undefined ? {} : { mimeType };
  if (format !== "json") return { part: "data", format, body: bytes, ...named };
  const read = readText(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
  return { ...read, format: "json", body: bytes, bytes: bytes.length, ...named };
}
