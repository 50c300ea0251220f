import type { CellStatus } from "../protocol/outcome.ts";
import { clipText } from "../text/clip-text.ts";

/** Sentences in the result of a cell: what was noticed, and what is kept afterwards. */

/** `survives`: what later cells find. `keepsSandbox`: whether the next cell runs in the same sandbox. */
export function describeWhatSurvives(status: CellStatus, keepsSandbox: boolean): string {
  if (!keepsSandbox) return "The sandbox was closed. Only the result and artifacts of this cell were kept.";
  if (status === "ok") return "Variables and files of this cell are available in the next cell of this turn.";
  if (status === "sandbox_lost") return "The sandbox was lost. The next call says whether the earlier variables could be restored.";
  return "Nothing of this cell. Variables are as they were before it. Files that it changed may remain.";
}

/** Replaces the middle of a long stream. */
export function omittedOutputMark(stream: "stdout" | "stderr", characters: number): string {
  return `\n… [${characters} characters of ${stream} are not shown here] …\n`;
}

type Details = Readonly<Record<string, unknown>>;

/** Diagnostics come from a sandbox and can have any size. */
const MAX_NOTES = 20;
const MAX_NOTE_CHARACTERS = 1000;

/** `notes`: the diagnostics of a cell as sentences that a model can act on. A diagnostic without a sentence is shown as JSON. */
export function toDiagnosticNotes(diagnostics: Details): string[] {
  const notes = Object.entries(diagnostics).flatMap(([name, value]) => {
    const sentence = Object.hasOwn(sentences, name) ? sentences[name]!(value) : `${name}: ${toShortJson(value)}`;
    return sentence === "" ? [] : [clipText(sentence, MAX_NOTE_CHARACTERS)];
  });
  const omitted = notes.length - MAX_NOTES;
  return omitted > 0 ? [...notes.slice(0, MAX_NOTES), `… ${omitted} more notes`] : notes;
}

/** By the diagnostic's name; an empty sentence is left out. */
const sentences: Readonly<Record<string, (value: unknown) => string>> = {
  implicitResult: () => "The value of the last expression was used as the result. Call set_result(value) to be explicit.",
  implicitResultError: (value) =>
    `The last expression cannot be the result: ${String(value)}. Call set_result(value) with a value that has a JSON form.`,
  frames: () => "",
  nonFinite: (value) => {
    const places = toList(value)
      .slice(0, 5)
      .map(({ path, count }) => `${String(path)} (${String(count)})`);
    const more = toCount(value) > 5 ? ` and ${toCount(value) - 5} more places` : "";
    return `NaN or infinite values became null in the result: ${places.join(", ")}${more}.`;
  },
  unsavedFigures: (value) => (toCount(value) > 0 ? `${toCount(value)} figure(s) were drawn but not saved: call save_figure(alt).` : ""),
  showCalls: (value) => (toCount(value) > 0 ? "plt.show() shows nothing here: call save_figure(alt)." : ""),
  savefigCalls: (value) => (toCount(value) > 0 ? "plt.savefig() does not publish a figure: call save_figure(alt)." : ""),
  missingGlyphs: (value) => `Some characters are in no font and are drawn as boxes: ${toShortJson(value)}.`,
  overlappingLabels: (value) => (value ? `Tick labels overlap (${toShortJson(value)}): rotate them, use fewer, or a date locator.` : ""),
  largeLegend: (value) => (value ? `The legend has many entries (${toShortJson(value)}): draw fewer lines or label them directly.` : ""),
  lowCoverage: (value) => {
    const lines = toList(value).map(
      ({ label, observed, expected, largestGap }) =>
        `${String(label)} has ${String(observed)} of ${String(expected)} points, largest gap ${toShortJson(largestGap)}`,
    );
    return `Plotted lines are sparse: ${lines.slice(0, 5).join("; ")}. Repair with python_code_edit (align first, fill from the source), or name the cadence in save_figure.`;
  },
  dataQuality: (value) => (toCount(value) > 0 ? `Data quality: ${toShortJson(value)}` : ""),
  inputsChanged: (value) => {
    const files = toList(value).map(({ alias, bytes }) => `${String(alias)} (now ${String(bytes)} bytes)`);
    return `Changed on disk since an earlier cell used them: ${files.join(", ")}. This cell had the new content; variables of earlier cells still hold values from the old content.`;
  },
  scratchChanged: (value) => (toCount(value) > 0 ? `Files that the failed cell changed: ${toShortJson(value)}.` : ""),
  leftBehind: (value) => {
    const { threads, processes } = (value ?? {}) as Details;
    return `The cell left ${String(threads)} thread(s) and ${String(processes)} process(es) running: join and wait for them in the cell.`;
  },
  cellUndone: () => "The previous cell was undone for an edit that was aborted before it ran. Variables are as they were before that cell.",
  sandboxReplaced: (value) => {
    const { variables, cells, because } = (value ?? {}) as Details;
    return variables === "replayed"
      ? `The sandbox was replaced. The ${String(cells)} earlier cell(s) were run again, so their variables and files are available. Files left by failed cells are lost.`
      : `The sandbox was replaced, and the variables and files of ${String(cells)} earlier cell(s) are lost (${String(because)}). Derive them again. Inputs are still bound.`;
  },
};

function toCount(value: unknown): number {
  return Array.isArray(value) ? value.length : Number(value);
}

function toList(value: unknown): Details[] {
  return Array.isArray(value) ? (value as Details[]) : [];
}

function toShortJson(value: unknown): string {
  return clipText(JSON.stringify(value) ?? "", 600);
}
