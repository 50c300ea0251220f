import type { ModelScript } from "../../src/models/model-script.ts";
import { sampleCharts } from "./sample-charts.ts";

const contract = {
  operation: "derive_metric",
  reason: "The prices are asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts: [] as string[],
};

function cell(code: string, expectedArtifacts: string[] = []): ModelScript["steps"][number] {
  return { toolCalls: [{ tool: "code_interpreter", input: { code, postProcessingContract: { ...contract, expectedArtifacts } } }] };
}

function answer(text: string): ModelScript["steps"][number] {
  return { toolCalls: [{ tool: "final_response", input: { answer: text } }] };
}

const fetching: ModelScript["steps"][number] = { toolCalls: [{ tool: "get_prices", input: { symbol: "A" } }] };

export const endlessCode =
  "# goes on and on\nimport time\nfor n in range(10**9):\n    print('tick', n, flush=True)\n    time.sleep(0.25)\n";

/** Draws, then prints until it is stopped. */
export const endlessScript: ModelScript = {
  plan: { chartIntent: "explicit", measures: ["mean price"], population: "all days" },
  steps: [
    fetching,
    cell(
      'frame = to_frame(get_prices_1)\nplt.plot(frame["day"], frame["price"])\nsave_figure("A line of daily prices over three hundred days", title="Prices")\nset_result({"mean": frame["price"].mean()})\n',
      ["image"],
    ),
    cell(endlessCode),
  ],
};

/** A chart of every type, drawn in Python from the sample data. */
export const galleryScript: ModelScript = {
  plan: { chartIntent: "explicit", measures: [], population: "samples" },
  steps: [
    fetching,
    cell(
      `import json\ncharts = json.loads(${JSON.stringify(JSON.stringify(sampleCharts.map(({ title, spec, data }) => ({ title, spec, data }))))})\nfor chart in charts:\n    render_chart(chart["spec"], chart["data"], title=chart["title"])\nset_result({"charts": len(charts)})\n`,
      ["chart"],
    ),
    answer("Every type of chart."),
  ],
  synthesis: [
    "## Every type",
    "",
    "Some are *plain*, some are **stacked**, and `gaps` stay gaps.",
    "",
    "- lines",
    "- bars",
    "  1. beside each other",
    "  2. on each other",
    "",
    "| kind | axis |",
    "|---|---:|",
    "| line | time |",
    "| histogram | number |",
  ].join("\n"),
};

export const evil = '<img src=x onerror="window.owned=1">';

/** Markup, script addresses and remote pictures wherever a model, a tool or a cell can put them. */
export const hostileScript: ModelScript = {
  plan: { chartIntent: "explicit", measures: [evil], population: "<script>window.owned=2</script>" },
  steps: [
    { toolCalls: [{ tool: "get_prices", input: { symbol: evil } }] }, // the answer has a column of that name
    cell(
      [
        `evil = ${JSON.stringify(evil)}`,
        "print(evil)",
        "print('<script>window.owned=3</script> [a](javascript:window.owned=8) ![p](https://evil.example/stdout.png)')",
        "plt.plot([1, 2, 3], [1, 4, 9], label=evil)",
        'plt.title(evil.replace("$", ""))',
        'save_figure("A line with " + evil + " in its words", title=evil)',
        'render_chart({"type": "bar", "xKey": evil, "series": [{"key": "n", "label": evil}, {"key": "m", "label": "javascript:window.owned=10"}], "legend": True, "xAxis": {"label": evil}, "referenceLines": [{"axis": "y", "value": 1, "label": evil}]}, [{evil: evil, "n": 1, "m": 2}, {evil: "javascript:window.owned=4", "n": 2, "m": 1}], title=evil)',
        "set_result([{evil: evil, 'link': 'javascript:window.owned=11', 'picture': '![p](https://evil.example/row.png)'}])",
      ].join("\n"),
      ["image", "chart"],
    ),
    cell(`raise ValueError(${JSON.stringify(evil)})\n`),
    answer("x"),
  ],
  synthesis: [
    `An answer with ${evil} and <script>window.owned=5</script>.`,
    "",
    "[a link](javascript:window.owned=6) and [another](data:text/html,<script>window.owned=7</script>) and [a good one](https://example.org/page).",
    "",
    "<a href='javascript:window.owned=12'>html link</a> <https://example.org/auto> <javascript:window.owned=13> [ref][1]",
    "",
    "![a remote picture](https://evil.example/pixel.png) ![inline](data:image/svg+xml,<svg/onload=alert(1)>) ![by reference][2]",
    "",
    "Figure 1 and Chart 1.",
    "",
    "[1]: JaVaScRiPt:window.owned=14",
    "[2]: //evil.example/reference.png",
  ].join("\n"),
};

/** A chart is requested, and the cell that should draw it fails. */
export const failedChartScript: ModelScript = {
  plan: { chartIntent: "explicit", measures: ["mean price"], population: "all days" },
  steps: [
    fetching,
    cell("plt.plot([1, 2\n", ["image"]),
    cell("raise ValueError('no such column: prize')\n", ["image"]),
    answer("The mean price is 103."),
  ],
  synthesis: "The mean price is 103.",
};

/** A line with a gap that stays. */
export const sparseModelScript: ModelScript = {
  plan: { chartIntent: "explicit", measures: ["price"], population: "all days" },
  steps: [
    fetching,
    cell(
      [
        'days = pd.date_range("2024-01-01", periods=100)',
        "prices = np.full(100, np.nan)",
        "prices[:5], prices[95:] = 1, 2",
        'plt.plot(days, prices, label="price", marker=".")',
        'save_figure("A line of daily prices with a hole of ninety days", title="Prices")',
        'set_result({"days": 10})',
      ].join("\n"),
      ["image"],
    ),
    answer("See Figure 1."),
  ],
  synthesis: "See Figure 1.",
};

/** Calls a tool that deletes. */
export const approvalScript: ModelScript = {
  steps: [{ toolCalls: [{ tool: "delete_note", input: { symbol: "N-17" } }] }, answer("Done as you said.")],
  synthesis: "Done as you said.",
};

/** The same from a script. */
export const scriptApprovalScript: ModelScript = {
  steps: [
    { toolCalls: [{ tool: "execute", input: { code: 'return await call_tool("delete_note", {"symbol": "N-18"})' } }] },
    answer("Done as you said."),
  ],
  synthesis: "Done as you said.",
};
