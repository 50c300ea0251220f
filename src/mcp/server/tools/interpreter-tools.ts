import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { renderChart, renderChartCallSchema, type ChartAnswer } from "../../../charts/render-chart.ts";
import { runCodeInterpreter, type CodeInterpreterAnswer } from "../../../interpreter/code-interpreter.ts";
import { codeInterpreterCallSchema } from "../../../interpreter/contract/code-interpreter-call.ts";
import { pythonCodeEditCallSchema, runPythonCodeEdit } from "../../../interpreter/python-code-edit.ts";
import { toModelAnswer } from "../../../interpreter/to-model-answer.ts";
import { toolDescriptions } from "../../../interpreter/tool-descriptions.ts";
import type { ImageArtifact } from "../../../protocol/artifact.ts";
import { chartAppMeta } from "../resources/chart-app.ts";
import type { PublishedImage } from "../results/to-image-content.ts";
import { toErrorReply, type ToolReply } from "../results/to-call-result.ts";
import { outputSchemas } from "./output-schemas.ts";
import { linksTo, type SluiceCall, type SluiceTool } from "./sluice-tool.ts";

/** Results up to this size are in the answer whole. */
const SHOWN_RESULT_BYTES = 2048;

/** `code_interpreter`, `python_code_edit` and `render_chart`. */
export function createInterpreterTools({ hasChartApp }: { hasChartApp: boolean }): readonly SluiceTool[] {
  const face = (name: keyof typeof toolDescriptions, title: string, schema: z.ZodType): Tool => ({
    name,
    title,
    description: toolDescriptions[name],
    inputSchema: published(schema),
    outputSchema: outputSchemas[name]!,
    // It changes nothing outside of its own sandbox. The same call again is another cell, though.
    annotations: { title, readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    ...(hasChartApp ? { _meta: chartAppMeta } : {}),
  });
  return [
    {
      listing: face("code_interpreter", "Run Python on data", codeInterpreterCallSchema),
      run: (call) => runCell(call, runCodeInterpreter),
    },
    {
      listing: face("python_code_edit", "Edit and rerun Python", pythonCodeEditCallSchema),
      run: (call) => runCell(call, runPythonCodeEdit),
    },
    { listing: face("render_chart", "Draw a chart", renderChartCallSchema), run: drawChart },
  ];
}

async function runCell(call: SluiceCall, work: typeof runCodeInterpreter): Promise<ToolReply> {
  const { session } = call.entered;
  const endCell = session.beginCell(call.progress);
  try {
    return toReply(await work(session.turn(), call.args, { signal: call.signal }), call);
  } finally {
    endCell();
  }
}

function toReply(answer: CodeInterpreterAnswer, call: SluiceCall): ToolReply {
  const { keepsSandbox, session } = call.entered;
  const { evidence } = session;
  const { resultAlias, artifacts, envelope } = answer;
  return {
    json: toModelAnswer(answer, evidence, { keepsSandbox }),
    isError: envelope !== null,
    images: imagesOf(answer),
    charts: artifacts.filter((artifact) => artifact.kind === "chart"),
    links: resultAlias === null ? [] : linksTo(call, evidence, [resultAlias], SHOWN_RESULT_BYTES),
  };
}

/** Artifacts are published in the order in which the cell gave them out. */
function imagesOf({ outcome, artifacts }: CodeInterpreterAnswer): PublishedImage[] {
  return artifacts.flatMap((artifact, index) => {
    const bytes = outcome?.artifacts[index]?.bytes;
    return artifact.kind === "image" && bytes !== undefined ? [{ artifact: artifact satisfies ImageArtifact, bytes }] : [];
  });
}

async function drawChart({ entered: { session }, args, signal }: SluiceCall): Promise<ToolReply> {
  const { evidence, artifacts, data } = session;
  const answer: ChartAnswer = await renderChart({ input: args, evidence, artifacts, readRows: data.chartRows, signal });
  if (!answer.ok) return toErrorReply(answer.envelope);
  const { kind, url, contentHash, spec, data: rows, title } = answer.artifact;
  const json = JSON.stringify({ status: "ok", artifacts: [{ kind, url, contentHash, title, type: spec.type, rows: rows.length }] });
  return { json, isError: false, charts: [answer.artifact] };
}

function published(schema: z.ZodType): Tool["inputSchema"] {
  return z.toJSONSchema(schema, { io: "input" }) as Tool["inputSchema"];
}
