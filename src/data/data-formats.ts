import path from "node:path";
import type { EvidenceFormat } from "../evidence/evidence-store.ts";
import { dataFileEndings } from "../protocol/data-files.ts";
import { clipMiddle } from "../text/clip-text.ts";

/** Returns the format of a file by its extension, or null if the file is not data. */
export function formatOf(fileName: string): EvidenceFormat | null {
  const extension = path.extname(fileName).toLowerCase();
  if (!dataFileEndings.includes(extension)) return null;
  return extension === ".txt" ? "text" : (extension.slice(1) as EvidenceFormat);
}

/** Returns the name of a file without directory and extension. */
export function stemOf(fileName: string): string {
  return path.basename(fileName, path.extname(fileName));
}

/** Makes a name or path safe to print: escapes control characters and line breaks, and shortens it to 300 characters. */
export function toPrintable(name: string): string {
  const plain = name.replaceAll(/[\p{C}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
  return clipMiddle(plain, 299, () => "…");
}

/** Replaces control characters, line breaks and direction marks with spaces, and shortens the name to 200 characters. */
export function toPlainName(name: string): string {
  const plain = name.replaceAll(/[\p{C}\u2028\u2029]+/gu, " ").trim();
  return clipMiddle(plain, 199, () => "…");
}
