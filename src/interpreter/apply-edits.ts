import { clipText } from "../text/clip-text.ts";
import type { PythonCodeEditCall } from "./python-code-edit.ts";

export type EditedCode =
  | { ok: true; code: string }
  | { ok: false; index: number; problem: "not_found" | "ambiguous"; count: number; nearest: string };

/** Applies edits one after the other. Each old text must be there exactly once; else the answer shows the lines that come nearest, or those that have it. */
export function applyEdits(code: string, edits: PythonCodeEditCall["edits"]): EditedCode {
  let edited = code;
  for (const [index, { oldText, newText }] of edits.entries()) {
    const places = placesOf(edited, oldText);
    const [at] = places;
    if (at === undefined) return { ok: false, index, problem: "not_found", count: 0, nearest: nearestLines(edited, oldText) };
    if (places.length > 1)
      return { ok: false, index, problem: "ambiguous", count: places.length, nearest: linesOf(edited, places, oldText.length) };
    edited = edited.slice(0, at) + newText + edited.slice(at + oldText.length);
  }
  return { ok: true, code: edited };
}

const MAX_LINES = 20;
const MAX_CHARACTERS = 200;

function placesOf(text: string, part: string): number[] {
  if (part === "") return [];
  const places: number[] = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) places.push(at);
  return places;
}

/** Every line that a match is on. */
function linesOf(code: string, places: readonly number[], length: number): string {
  const touched = new Set<number>();
  const lineAt = (offset: number): number => code.slice(0, offset).split("\n").length - 1;
  for (const at of places.slice(0, MAX_LINES + 1))
    for (let line = lineAt(at); line <= lineAt(at + length - 1) && touched.size <= MAX_LINES; line += 1) touched.add(line);
  return show(code.split("\n"), [...touched]);
}

/** The run of lines that shares the most words with the wanted text, with a line of context on either side. */
function nearestLines(code: string, wanted: string): string {
  const lines = code.split("\n");
  const height = Math.min(wanted.split("\n").length, lines.length);
  const words = new Set(wordsOf(wanted));
  let [best, bestScore] = [0, -1];
  for (let start = 0; start + height <= lines.length; start += 1) {
    const score = wordsOf(lines.slice(start, start + height).join("\n")).filter((word) => words.has(word)).length;
    if (score > bestScore) [best, bestScore] = [start, score];
  }
  const from = Math.max(0, best - 1);
  return show(lines, lines.map((_, line) => line).slice(from, best + height + 1));
}

/** Lines with their numbers; what is left out of them is marked. */
function show(lines: readonly string[], numbers: readonly number[]): string {
  const shown = numbers.slice(0, MAX_LINES).map((line) => `${line + 1}: ${clipText(lines[line]!, MAX_CHARACTERS)}`);
  return [...shown, ...(numbers.length > MAX_LINES ? ["…"] : [])].join("\n");
}

function wordsOf(text: string): string[] {
  return text.match(/\w+/g) ?? [];
}
