/** Descriptions of the interpreter's tools. The rules for using them are in librarian-prompt.ts. */
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

/** Descriptions of their parameters. */
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
  },
} as const;
