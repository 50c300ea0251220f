/** One replacement in the code of a cell. */
export interface CodeEdit {
  readonly oldText: string;
  readonly newText: string;
}

export type EditedCode =
  | { ok: true; code: string }
  | { ok: false; index: number; problem: "not_found" | "ambiguous"; count: number; nearest: string };

/** Applies edits one after the other. Each old text must be there exactly once; else the answer shows the lines that come nearest. */
export function applyEdits(code: string, edits: readonly CodeEdit[]): EditedCode {
  let edited = code;
  for (const [index, { oldText, newText }] of edits.entries()) {
    const count = countOf(edited, oldText);
    if (count !== 1)
      return { ok: false, index, problem: count === 0 ? "not_found" : "ambiguous", count, nearest: nearestLines(edited, oldText) };
    const at = edited.indexOf(oldText);
    edited = edited.slice(0, at) + newText + edited.slice(at + oldText.length);
  }
  return { ok: true, code: edited };
}

function countOf(text: string, part: string): number {
  if (part === "") return 0;
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) count += 1;
  return count;
}

/** The run of lines that shares the most words with the wanted text, numbered, with a line of context on either side. */
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
  return lines
    .slice(from, Math.min(best + height + 1, from + 20))
    .map((line, offset) => `${from + offset + 1}: ${line.slice(0, 200)}`)
    .join("\n");
}

function wordsOf(text: string): string[] {
  return text.match(/\w+/g) ?? [];
}
