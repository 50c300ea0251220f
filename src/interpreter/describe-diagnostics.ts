import { clipText } from "../evidence/preview/clip-text.ts";

type Found = Readonly<Record<string, unknown>>;

/** What was noticed about a cell, in sentences a model can act on. Unknown keys are shown as they are: nothing is dropped in silence. */
export function describeDiagnostics(diagnostics: Found): string[] {
  const notes = Object.entries(diagnostics).flatMap(([name, value]) => {
    const words = Object.hasOwn(sentences, name) ? sentences[name]!(value) : `${name}: ${brief(value)}`;
    return words === "" ? [] : [clipText(words, NOTE_CHARACTERS)];
  });
  const rest = notes.length - MOST_NOTES;
  return rest > 0 ? [...notes.slice(0, MOST_NOTES), `… ${rest} more notes`] : notes;
}

/** What is in them comes out of a sandbox, and may be of any size. */
const NOTE_CHARACTERS = 1000;
const MOST_NOTES = 20;

const count = (value: unknown): number => (Array.isArray(value) ? value.length : Number(value));
const list = (value: unknown): Found[] => (Array.isArray(value) ? (value as Found[]) : []);
const brief = (value: unknown): string => clipText(JSON.stringify(value) ?? "", 600);

const sentences: Readonly<Record<string, (value: unknown) => string>> = {
  implicitResult: () => "The value of the last expression was taken as the result; call set_result(value) to say it.",
  implicitResultError: (value) => `The last expression is no result: ${String(value)}. Call set_result(value) with what has a JSON form.`,
  frames: () => "",
  nonFinite: (value) => {
    const places = list(value)
      .slice(0, 5)
      .map(({ path, count: times }) => `${String(path)} (${String(times)})`);
    return `NaN or infinite values became null in the result: ${places.join(", ")}${count(value) > 5 ? ` and ${count(value) - 5} more places` : ""}.`;
  },
  unsavedFigures: (value) => (count(value) > 0 ? `${count(value)} figure(s) were drawn and not handed over: call save_figure(alt).` : ""),
  showCalls: (value) => (count(value) > 0 ? "plt.show() shows nothing here: call save_figure(alt)." : ""),
  savefigCalls: (value) => (count(value) > 0 ? "plt.savefig() writes a file that nobody gets: call save_figure(alt)." : ""),
  missingGlyphs: (value) => `No font has some characters, they are drawn as boxes: ${brief(value)}.`,
  overlappingLabels: (value) => (value ? `Tick labels overlap (${brief(value)}): rotate them, use fewer, or a date locator.` : ""),
  largeLegend: (value) => (value ? `The legend has many entries (${brief(value)}): draw fewer lines or label them directly.` : ""),
  lowCoverage: (value) => {
    const lines = list(value).map(
      ({ label, observed, expected, largestGap }) =>
        `${String(label)} has ${String(observed)} of ${String(expected)} points, largest hole ${brief(largestGap)}`,
    );
    return `Plotted lines are sparse: ${lines.slice(0, 5).join("; ")}. Repair with python_code_edit (align first, fill from the source), or name the cadence in save_figure.`;
  },
  dataQuality: (value) => (count(value) > 0 ? `Data quality: ${brief(value)}` : ""),
  inputsChanged: (value) => {
    const files = list(value).map(({ alias, bytes }) => `${String(alias)} (now ${String(bytes)} bytes)`);
    return `Changed on disk since an earlier cell used them: ${files.join(", ")}. This cell had the new content; variables that earlier cells made of the old one are as they were.`;
  },
  scratchChanged: (value) => (count(value) > 0 ? `Files that the failed cell changed: ${brief(value)}.` : ""),
  leftBehind: (value) => {
    const { threads, processes } = (value ?? {}) as Found;
    return `The cell left ${String(threads)} thread(s) and ${String(processes)} process(es) running: join and wait for them in the cell.`;
  },
  cellUndone: () =>
    "The cell before this one was undone for an edit that was aborted: variables that it had made or changed are as they were before it.",
  sandboxReplaced: (value) => {
    const { variables, cells, because } = (value ?? {}) as Found;
    return variables === "replayed"
      ? `The sandbox was replaced; the ${String(cells)} earlier cell(s) were run again, so their variables and files are there. Files that failed cells had left are not.`
      : `The sandbox was replaced and the variables and files of ${String(cells)} earlier cell(s) are gone (${String(because)}): derive them again. Inputs are still bound.`;
  },
};
