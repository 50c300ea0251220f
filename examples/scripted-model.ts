/** Stands in for a language model: it says the same things every time, so that the example can be run without a key. */
import { MockLanguageModelV4 } from "ai/test";

type Script = Record<string, unknown> & { tool: string };

const postProcessingContract = {
  operation: "derive_metric",
  reason: "A mean is asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts: [],
};
const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };

const script: readonly (Script | string)[] = [
  { tool: "get_prices", symbol: "A" },
  { tool: "code_interpreter", code: "df = to_frame(get_prices_1)\nset_result(round(df['prize'].mean(), 2))", postProcessingContract },
  { tool: "python_code_edit", edits: [{ oldText: "prize", newText: "price" }] },
  { tool: "render_chart", alias: "get_prices_1", spec, title: "Price of A" },
  "The mean price of A over 300 days is 102.99.",
];

const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
const usage = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: 0 } };

export const scriptedModel: MockLanguageModelV4 = new MockLanguageModelV4({
  doGenerate: script.map((line, step) =>
    typeof line === "string"
      ? { content: [{ type: "text", text: line }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] }
      : { content: [toToolCall(line, step)], finishReason: { unified: "tool-calls", raw: "tool-calls" }, usage, warnings: [] },
  ),
});

function toToolCall(
  { tool: toolName, ...input }: Script,
  step: number,
): { type: "tool-call"; toolCallId: string; toolName: string; input: string } {
  return { type: "tool-call", toolCallId: `call-${step}`, toolName, input: JSON.stringify(input) };
}
