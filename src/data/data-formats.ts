import path from "node:path";
import type { EvidenceFormat } from "../evidence/evidence-store.ts";
import { dataFileEndings } from "../protocol/data-files.ts";
import { clipMiddle } from "../text/clip-text.ts";

/** How Python reads a file, by its ending; null for what is no data. */
export function formatOf(fileName: string): EvidenceFormat | null {
  const ending = path.extname(fileName).toLowerCase();
  if (!dataFileEndings.includes(ending)) return null;
  return ending === ".txt" ? "text" : (ending.slice(1) as EvidenceFormat);
}

export function stemOf(fileName: string): string {
  return path.basename(fileName, path.extname(fileName));
}

/** A name or a path in words that cannot do anything: no line ends, no control characters, not endless. */
export function toPrintable(name: string): string {
  const plain = name.replaceAll(/[\p{C}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
  return clipMiddle(plain, 299, () => "…");
}

/** A name without what cannot be seen: control characters, line ends, marks that turn the direction of writing. */
export function toPlainName(name: string): string {
  const plain = name.replaceAll(/[\p{C}\u2028\u2029]+/gu, " ").trim();
  return clipMiddle(plain, 199, () => "…");
}
