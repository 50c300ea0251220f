import { z } from "zod";
import { renderChart, renderChartCallSchema, type ReadChartRows } from "../../interpreter/render-chart.ts";
import { runCodeInterpreter, type CallOptions } from "../../interpreter/code-interpreter.ts";
import { codeInterpreterCallSchema } from "../../interpreter/call-contract/code-interpreter-call.ts";
import { inSpan } from "../../interpreter/in-span.ts";
import { pythonCodeEditCallSchema, runPythonCodeEdit } from "../../interpreter/python-code-edit.ts";
import { interpreterDescriptions } from "../../prompts/interpreter-tools.ts";
import type { ToolResult } from "../../interpreter/tool-result.ts";
import type { InterpreterTurn } from "../../interpreter/interpreter-turn.ts";
import { toErrorResult, type Tool, type ToolCallResult } from "../../tools/tool.ts";

export interface InterpreterContext extends CallOptions {
  readonly turn: InterpreterTurn;
  /** Lets `render_chart` read rows that need Python. */
  readonly readRows?: ReadChartRows | undefined;
}

export type CellCallResult = ToolCallResult & ToolResult;

/** The tools change nothing outside their sandbox. They are not idempotent: the same call again runs another cell. */
const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false };

export const codeInterpreterTool: Tool<InterpreterContext, CellCallResult> = {
  name: "code_interpreter",
  title: "Run Python on data",
  description: interpreterDescriptions.code_interpreter,
  inputSchema: z.toJSONSchema(codeInterpreterCallSchema, { io: "input" }),
  annotations,
  run: async (input, { turn, ...rest }) => toCellCallResult(await runCodeInterpreter(turn, input, rest), turn),
};

export const pythonCodeEditTool: Tool<InterpreterContext, CellCallResult> = {
  name: "python_code_edit",
  title: "Edit and rerun Python",
  description: interpreterDescriptions.python_code_edit,
  inputSchema: z.toJSONSchema(pythonCodeEditCallSchema, { io: "input" }),
  annotations,
  run: async (input, { turn, ...rest }) => toCellCallResult(await runPythonCodeEdit(turn, input, rest), turn),
};

export const renderChartTool: Tool<InterpreterContext> = {
  name: "render_chart",
  title: "Draw a chart",
  description: interpreterDescriptions.render_chart,
  inputSchema: z.toJSONSchema(renderChartCallSchema, { io: "input" }),
  annotations,
  run: async (input, { turn: { id, evidence, artifacts }, readRows, signal }) =>
    await inSpan("sluice.render_chart", { "sluice.turn": id }, async (span) => {
      signal?.throwIfAborted();
      const answer = await renderChart({ input, evidence, artifacts, readRows, signal });
      span.set({ "sluice.status": answer.ok ? "ok" : "refused" });
      if (!answer.ok) {
        span.fail(answer.toolError.error_code);
        return toErrorResult(answer.toolError, answer.toolError.error_kind === "mcp_input_validation" ? "refused" : "error");
      }
      const { kind, url, contentHash, spec, data, title } = answer.artifact;
      const chart = { kind, url, contentHash, title, type: spec.type, rows: data.length }; // the model has the rows under their alias
      const text = JSON.stringify({ status: "ok", artifacts: [chart] });
      return { status: "ok", text, error: null, artifacts: [answer.artifact] };
    }),
};

/** A result up to this size is in the text in full. */
const SHOWN_RESULT_BYTES = 2048;

function toCellCallResult(result: ToolResult, { evidence }: InterpreterTurn): CellCallResult {
  const { error, outcome, resultAlias } = result;
  const aliases = resultAlias === null ? [] : [resultAlias];
  return {
    ...result,
    status: outcome === null ? "refused" : error === null ? "ok" : "error",
    aliases,
    cutAliases: aliases.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > SHOWN_RESULT_BYTES),
  };
}
