/** An AI SDK app whose model computes with tool outputs. Run it: `node examples/ai-sdk-app.ts`. The model is scripted; replace it with a real one. */
import { generateText, isStepCount, jsonSchema, tool } from "ai";
import * as sluice from "../src/index.ts";
import { createCodeInterpreterTools } from "../src/entries/ai-sdk.ts";
import { scriptedModel } from "./scripted-model.ts";

const runtime = sluice.createRuntime({ cacheDirectory: sluice.cacheDirectory() });
const evidence = sluice.createEvidenceStore();
const turn = runtime.createTurn({ id: "turn-1", evidence, artifacts: sluice.createMemoryStore() });
const { tools, instructions } = await createCodeInterpreterTools(runtime, turn);

/** Your own tools fetch data. Their complete output is stored as evidence; the model reads a preview. */
const get_prices = tool({
  description: "Daily prices of a symbol.",
  inputSchema: jsonSchema<{ symbol: string }>({ type: "object", properties: { symbol: { type: "string" } }, required: ["symbol"] }),
  execute: ({ symbol }) => {
    const rows = Array.from({ length: 300 }, (_, day) => ({ day, symbol, price: 100 + (day % 7) }));
    const { alias } = evidence.add({ tool: "get_prices", arguments: { symbol }, output: rows });
    return evidence.preview(alias).json;
  },
});

try {
  const { text, steps } = await generateText({
    model: scriptedModel,
    instructions,
    tools: { ...tools, get_prices },
    stopWhen: isStepCount(8),
    prompt: "What is the mean price of A? Draw it, too.",
  });
  for (const { dynamic, toolName, output } of steps.flatMap(({ toolResults }) => toolResults)) {
    if (dynamic || toolName === "get_prices") console.log(toolName, String(output).slice(0, 60));
    else if (toolName === "render_chart") console.log(toolName, output.error?.summary ?? `${pointsOf(output.artifacts?.[0])} points`);
    else console.log(toolName, output.error?.summary ?? output.outcome?.resultJson);
  }
  console.log(text);
} finally {
  await sluice.disposeTurnSandbox(turn);
  await runtime.close();
}

function pointsOf(chart: sluice.ArtifactEnvelope | undefined): number {
  return chart?.kind === "chart" ? chart.data.length : 0;
}
