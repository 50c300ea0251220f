/** Replaces a language model with fixed answers, so that the example runs without an API key. */
import { createScriptedModel } from "../src/entries/ai-sdk.ts";

const code = "df = to_frame(get_prices_1)\nset_result(round(df['prize'].mean(), 2))";
const postProcessingContract = {
  operation: "derive_metric",
  reason: "A mean is asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts: [],
};
const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };

export const scriptedModel: ReturnType<typeof createScriptedModel> = createScriptedModel({
  steps: [
    { toolCalls: [{ tool: "get_prices", input: { symbol: "A" } }] },
    { toolCalls: [{ tool: "code_interpreter", input: { code, postProcessingContract } }] },
    { toolCalls: [{ tool: "python_code_edit", input: { edits: [{ oldText: "prize", newText: "price" }] } }] },
    { toolCalls: [{ tool: "render_chart", input: { alias: "get_prices_1", spec, title: "Price of A" } }] },
    { text: "The mean price of A over 300 days is 102.99." },
  ],
});
