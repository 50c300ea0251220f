import { jsonSchema, tool, type Tool } from "ai";
import { z } from "zod";
import { renderChart, renderChartCallSchema, type ChartAnswer } from "../charts/render-chart.ts";
import { codeInterpreterCallSchema } from "../interpreter/contract/code-interpreter-call.ts";
import { runCodeInterpreter, type CodeInterpreterAnswer } from "../interpreter/code-interpreter.ts";
import { inSpan } from "../interpreter/in-span.ts";
import { pythonCodeEditCallSchema, runPythonCodeEdit } from "../interpreter/python-code-edit.ts";
import { toModelAnswer } from "../interpreter/to-model-answer.ts";
import { toolDescriptions } from "../interpreter/tool-descriptions.ts";
import type { InterpreterTurn } from "../interpreter/turn.ts";
import { toChartText } from "./to-chart-text.ts";

export interface CodeInterpreterTools {
  code_interpreter: Tool<unknown, CodeInterpreterAnswer>;
  python_code_edit: Tool<unknown, CodeInterpreterAnswer>;
  render_chart: Tool<unknown, ChartAnswer>;
}

/**
 * The interpreter as AI SDK tools. The published schemas are strict, and checked by us: a call that breaks one gets an envelope that it can be
 * mended by, not the SDK's sentence. Await running tools before `disposeTurnSandbox(turn)`.
 */
export async function createCodeInterpreterTools(runtime: PromptSource, turn: InterpreterTurn): Promise<InterpreterFace> {
  return { tools: createTools(turn), instructions: await runtime.librarianPrompt() };
}

/** What a model gets: the tools, and what it must know to use them. */
export interface InterpreterFace {
  readonly tools: CodeInterpreterTools;
  readonly instructions: string;
}

export interface PromptSource {
  librarianPrompt(): Promise<string>;
}

function createTools(turn: InterpreterTurn): CodeInterpreterTools {
  return {
    code_interpreter: tool({
      description: toolDescriptions.code_interpreter,
      inputSchema: published(codeInterpreterCallSchema),
      execute: (input: unknown, { abortSignal }) => runCodeInterpreter(turn, input, { signal: abortSignal }),
      toModelOutput: ({ output }) => toText(output, turn),
    }),
    python_code_edit: tool({
      description: toolDescriptions.python_code_edit,
      inputSchema: published(pythonCodeEditCallSchema),
      execute: (input: unknown, { abortSignal }) => runPythonCodeEdit(turn, input, { signal: abortSignal }),
      toModelOutput: ({ output }) => toText(output, turn),
    }),
    render_chart: tool({
      description: toolDescriptions.render_chart,
      inputSchema: published(renderChartCallSchema),
      execute: (input: unknown, { abortSignal }) => drawChart(turn, input, abortSignal),
      toModelOutput: ({ output }) =>
        output.ok
          ? { type: "text", value: toChartText(output.artifact) }
          : { type: "error-text", value: JSON.stringify({ status: "refused", error: output.envelope }) },
    }),
  };
}

async function drawChart(turn: InterpreterTurn, input: unknown, signal: AbortSignal | undefined): Promise<ChartAnswer> {
  return await inSpan("sluice.render_chart", { "sluice.turn": turn.id }, async (span) => {
    signal?.throwIfAborted();
    const answer = await renderChart({ input, evidence: turn.evidence, artifacts: turn.artifacts, signal });
    span.set({ "sluice.status": answer.ok ? "ok" : "refused" });
    if (!answer.ok) span.fail(answer.envelope.error_code);
    return answer;
  });
}

function published(schema: z.ZodType): ReturnType<typeof jsonSchema<unknown>> {
  return jsonSchema(z.toJSONSchema(schema, { io: "input" }) as Parameters<typeof jsonSchema>[0]);
}

function toText(answer: CodeInterpreterAnswer, turn: InterpreterTurn): { type: "text" | "error-text"; value: string } {
  return { type: answer.envelope === null ? "text" : "error-text", value: toModelAnswer(answer, turn.evidence) };
}
