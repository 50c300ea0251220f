import { describeCoverageEvent, readCoverage } from "../protocol/coverage-event.ts";
import type { CellStatus } from "../protocol/outcome.ts";
import { clipText } from "../text/clip-text.ts";
import { isRecord } from "../text/json.ts";

/** `code_interpreter`, `python_code_edit` and `render_chart`: descriptions, parameters, and the sentences in their results. */

type Details = Readonly<Record<string, unknown>>;

/** The rules for using these tools are in librarian-prompt.ts. */
export const interpreterDescriptions = {
  code_interpreter:
    "Derive metrics, tables and figures with sandboxed Python from tool outputs that were already fetched. Every tool output is a global under its alias, complete. No network. End with set_result(value); save_figure(alt) publishes a figure.",
  python_code_edit:
    "Fix the code of the last code_interpreter call by exact text replacements, and run it again from the state before that cell.",
  render_chart:
    "Draw a chart directly from one tool output or result, by alias, when its rows already have the right shape. Otherwise reshape them with code_interpreter.",
} as const;

const contractParameters = {
  operation: "The kind of derivation.",
  reason: "Why Python is needed here, in one sentence.",
  inputAliases: "Aliases of the tool outputs that the code derives from; at least one.",
  expectedArtifacts: 'Kinds that the code emits: "image" for save_figure, "chart" for render_chart, [] for a computation only.',
} as const;

export const interpreterParameters = {
  code_interpreter: {
    code: "Python 3.13. Read tool outputs by their alias; call set_result(value) with the final value.",
    inputs: "Optional names for this cell: local name to alias. Every alias is also bound under its own name.",
    postProcessingContract: "What the code is for and what it emits. Checked before the code runs and again afterwards.",
    ...contractParameters,
  },
  python_code_edit: {
    edits: "Replacements in the code of the last cell, applied one after the other.",
    oldText: "Text that occurs exactly once in the code.",
    newText: "The replacement.",
    postProcessingContract: "A new contract. Default: that of the last call.",
  },
  render_chart: {
    alias: "The tool output or result whose rows are drawn.",
    spec: "type; xKey, the column along x; series, each with the key of its column and optionally label, errorKey, yAxis (left or right) and, in a composed chart, type; xAxis, yAxis and yAxisRight with type (time, category, number), label and format. A heatmap has yKey and valueKey, a candlestick ohlc with openKey, highKey, lowKey and closeKey.",
    title: "Shown above the chart.",
    path: 'Where the rows are inside nested data, like "data.items" or "data[0].rows".',
    cadence:
      'Only for series along time that are sparse by design: by label or key, the intended step between their points, like "7D" or "1M", or null to skip the check.',
  },
} as const;

/** Hints in the errors of these tools. Hints that belong to an error code are in the error table. */
export const interpreterHints = {
  derivesOnly: "Python derives from tool outputs and cannot fetch data: name the aliases that the code reads.",
  noOutputs: "There are no tool outputs yet. Call a tool that fetches the data first, then use the alias of its output.",
  identifier: "Local names are Python identifiers: letters, digits and underscores, not starting with a digit.",
  otherName: "Choose another local name, or leave inputs out and use the alias itself.",
  dataByAlias: "Data is bound by alias; do not write it into the code.",
  checkAgain: "Try again; if it happens again, make the code shorter.",
  lessNesting: "Use a loop, or name intermediate values.",
  edit: "Fix it with python_code_edit: variables are as they were before this cell.",
  rejectedArtifact: "Fix the artifact that the summary names. Nothing of this cell was published.",
  nothingToEdit: "Call code_interpreter first.",
  copyExactly: "Copy the text exactly, with its spaces.",
  makeUnique: "Include more of the surrounding lines, so that the text is unique.",
  editedLines: "Line and column numbers refer to the edited code. The code of the last cell has not changed.",
  undone:
    "The last cell was undone, but its replacement was not run: variables are as they were before it. Send the same edit again to run the whole cell.",
  knownSeries: "Name series of the spec, by label or key.",
  reshape: "Reshape it with code_interpreter: build flat rows there and call render_chart(spec, data) in Python.",
} as const;

/** Hints for the syntax errors that models make most often. `line` is the line of the code. */
export function adviseOnSyntax(message: string, line: string): string[] {
  if (message.startsWith("`return`")) return ["A cell is a script: call set_result(value) instead of return."];
  if (/^`(?:await|yield)`/.test(message))
    return ["A cell is a plain script; tools cannot be called from it, and nothing needs to be awaited."];
  if (/^\s*[%!]/.test(line))
    return [
      "IPython magics and shell commands are not Python. Leave them out: nothing can be installed, and figures are saved with save_figure(alt).",
    ];
  if (/^\s*print\s+[^(=\s]/.test(line)) return ["print is a function: print(value)."];
  return /^\s*```/.test(line) ? ["Send the code alone, without Markdown fences."] : [];
}

/** Why a figure or chart should be drawn again: some of its series have few of the expected points. Also shown to the user, as a gap. */
export function describeSparseSeries(drawn: "figure" | "chart", lines: readonly Details[]): string {
  const listed = lines.slice(0, 3).map(({ label, observed, expected }) => {
    const name = JSON.stringify(typeof label === "string" ? clipText(label, 100) : label);
    return `${name} has ${String(observed)} of ${String(expected)} expected points`;
  });
  const more = lines.length > 3 ? `, and ${lines.length - 3} more lines` : "";
  return `The ${drawn} is sparse: ${listed.join("; ")}${more}.`;
}

/** Why a figure or chart should be drawn again: it draws what entities added by entering or leaving as if it had moved. Also shown to the user, as a gap. */
export function describeUnnamedCoverage(drawn: "figure" | "chart", series: readonly HiddenCoverage[]): string {
  const names = series.map(({ label }) => JSON.stringify(clipText(label, 100)));
  const events = [...new Set(series.flatMap(({ events: found }) => found))];
  const more = events.length > 3 ? `; and ${events.length - 3} more` : "";
  const within = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more series` : names.join(", ");
  return `The ${drawn} draws changes of coverage as part of ${within} without naming them: ${events.slice(0, 3).join("; ")}${more}.`;
}

/** For the model only. */
export function adviseOnCoverage(drawn: "figure" | "chart", series: readonly HiddenCoverage[]): string {
  const entities = [...new Set(series.flatMap(({ entities: found }) => found))].slice(0, 3);
  const named = ["coverage", ...entities].join(" or ");
  return `Draw stable_entities_change instead, or name ${named} in a label, title or text of the ${drawn}.`;
}

interface HiddenCoverage {
  readonly label: string;
  readonly events: readonly string[];
  readonly entities: readonly string[];
}

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

/** Diagnostics from a sandbox have their expected form (`readDiagnostics`), but can be long. */
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
  figureDataOmitted: (value) =>
    `${toCount(value)} figure(s) were published without their data, because the cell or turn has used up what it may emit.`,
  malformedDiagnostics: (value) => `The cell sent notes that are not in their expected form. They were left out: ${toShortJson(value)}.`,
  omittedDiagnostics: (value) => `Some notes were too long. Entries left out: ${toShortJson(value)}.`,
  frames: () => "",
  readings: (value) =>
    toList(value)
      .map(
        ({ alias, notes }) =>
          `${String(alias)}: ${toList(notes)
            .map(({ message }) => String(message))
            .join(" ")}`,
      )
      .join(" "),
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
    const series = toList(value).map(
      ({ label, observed, expected, against, largestGap }) =>
        `${String(label)} has ${String(observed)} of ${String(expected)} points of ${String(against)}, largest gap ${String(largestGap)}`,
    );
    return `Plotted series are sparse: ${series.slice(0, 5).join("; ")}. Align the series first, fill from the source, or, if a series is sparse by design, pass its cadence to save_figure or render_chart.`;
  },
  coverageUnknown: (value) => {
    const labels = toList(value).map(({ label }) => String(label));
    const more = labels.length > 5 ? ` and ${labels.length - 5} more` : "";
    return `Whether ${labels.slice(0, 5).join(", ")}${more} lack points is unknown: the steps are irregular, and no null and no other series shows what is missing.`;
  },
  coverageEvents: (value) => {
    const { events } = readCoverage({ coverageEvents: value });
    const more = events.length > 8 ? `; and ${events.length - 8} more` : "";
    return `Who was counted changed: ${events.slice(0, 8).map(describeCoverageEvent).join("; ")}${more}. Headline stable_entities_change; total_change over these events is not a flow. Name the events in the answer and in figures that cross them.`;
  },
  coverageSeries: () => "",
  coverageSeriesOmitted: (value) => {
    const series = toList(value).map(
      ({ series: name, periods, noted }) => `${String(name)} (${String(noted)} of ${String(periods)} periods, those around its events)`,
    );
    return `Long series are compared with figures and the answer only in part: ${series.slice(0, 5).join(", ")}.`;
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
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function toShortJson(value: unknown): string {
  return clipText(JSON.stringify(value) ?? "", 600);
}
