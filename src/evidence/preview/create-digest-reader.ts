import type { OutputPart, ReadPart } from "../output-part.ts";
import { parseJsonText } from "../parse-json-text.ts";
import { digest, type Digest } from "./digest.ts";

/** A small text waits until somebody asks for its preview: most results of cells and of calls in a script are never looked at this way. */
const SMALL_BYTES = 65_536;

/** Gives what previews are made of, made once. Of a small text nothing is held meanwhile but the bytes that are kept. */
export function createDigestReader(part: OutputPart | ReadPart, bytes: number, readBytes: () => Uint8Array): () => Digest {
  if ("digest" in part) return () => part.digest;
  if (typeof part.body === "string" && bytes <= SMALL_BYTES) return createLateReader(part.format, readBytes);
  const made = digest(part);
  return () => made;
}

function createLateReader(format: OutputPart["format"], readBytes: () => Uint8Array): () => Digest {
  let made: Digest | undefined;
  return () => {
    if (made !== undefined) return made;
    const body = new TextDecoder("utf-8", { ignoreBOM: true }).decode(readBytes());
    made = digest({ format, body, value: format === "json" ? parseJsonText(body)?.value : undefined });
    return made;
  };
}
