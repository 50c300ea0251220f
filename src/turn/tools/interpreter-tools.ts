import { z } from "zod";
import { renderChart, renderChartCallSchema, type ReadChartRows } from "../../interpreter/render-chart.ts";
import { runCodeInterpreter, type CallOptions } from "../../interpreter/code-interpreter.ts";
import { codeInterpreterCallSchema } from "../../interpreter/call-contract/code-interpreter-call.ts";
import { inSpan } from "../../interpreter/in-span.ts";
import { pythonCodeEditCallSchema, runPythonCodeEdit } from "../../interpreter/python-code-edit.ts";
import { interpreterDescriptions } from "../../prompts/interpreter-tools.ts";
import type { ToolResult } from "../../interpreter/tool-result.ts";
import type { InterpreterTurn } from "../../interpreter/interpreter-turn.ts";
import { toErrorResult, type Tool } from "../../tools/tool.ts";

export interface InterpreterContext extends CallOptions {
  readonly turn: InterpreterTurn;
  /** Lets `render_chart` read rows that need Python. */
  readonly readRows?: ReadChartRows | undefined;
}

/** The tools change nothing outside their sandbox. They are not idempotent: the same call again runs another cell. */
const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false };

export const codeInterpreterTool: Tool<InterpreterContext, ToolResult> = {
  name: "code_interpreter",
  title: "Run Python on data",
  description: interpreterDescriptions.code_interpreter,
  inputSchema: z.toJSONSchema(codeInterpreterCallSchema, { io: "input" }),
  annotations,
  run: (input, { turn, ...rest }) => runCodeInterpreter(turn, input, rest),
};

export const pythonCodeEditTool: Tool<InterpreterContext, ToolResult> = {
  name: "python_code_edit",
  title: "Edit and rerun Python",
  description: interpreterDescriptions.python_code_edit,
  inputSchema: z.toJSONSchema(pythonCodeEditCallSchema, { io: "input" }),
  annotations,
  run: (input, { turn, ...rest }) => runPythonCodeEdit(turn, input, rest),
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
