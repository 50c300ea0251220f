import { z } from "zod";
import { renderChart, renderChartCallSchema, type ReadChartRows } from "../../interpreter/render-chart.ts";
import { runCodeInterpreter, type CallOptions } from "../../interpreter/code-interpreter.ts";
import { codeInterpreterCallSchema } from "../../interpreter/call-contract/code-interpreter-call.ts";
import { inSpan } from "../../interpreter/in-span.ts";
import { pythonCodeEditCallSchema, runPythonCodeEdit } from "../../interpreter/python-code-edit.ts";
import { interpreterDescriptions } from "../../prompts/interpreter-tools.ts";
import { describeFindings, type Finding } from "../../interpreter/findings.ts";
import type { Repair, ToolResult } from "../../interpreter/tool-result.ts";
import type { InterpreterTurn } from "../../interpreter/interpreter-turn.ts";
import { toErrorResult, type Tool, type ToolCallResult } from "../../tools/tool.ts";

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

/** What `render_chart` returned. */
export interface ChartToolResult extends ToolCallResult {
  /** Flaws of the chart. */
  readonly findings: readonly Finding[];
}

export const renderChartTool: Tool<InterpreterContext, ChartToolResult> = {
  name: "render_chart",
  title: "Draw a chart",
  description: interpreterDescriptions.render_chart,
  inputSchema: z.toJSONSchema(renderChartCallSchema, { io: "input" }),
  annotations,
  run: async (input, { turn: { id, evidence, artifacts, coverage }, readRows, signal }) =>
    await inSpan("sluice.render_chart", { "sluice.turn": id }, async (span) => {
      signal?.throwIfAborted();
      const answer = await renderChart({ input, evidence, artifacts, readRows, coverage, signal });
      span.set({ "sluice.status": answer.ok ? "ok" : "refused" });
      if (!answer.ok) {
        span.fail(answer.toolError.error_code);
        const status = answer.toolError.error_kind === "mcp_input_validation" ? "refused" : "error";
        return { ...toErrorResult(answer.toolError, status), findings: [] };
      }
      const { findings, notes } = answer;
      const { kind, url, contentHash, spec, data, title } = answer.artifact;
      const chart = { kind, url, contentHash, title, type: spec.type, rows: data.length }; // the model has the rows under their alias
      const repair: Repair | null = findings.length === 0 ? null : { tool: "render_chart", because: describeFindings(findings) };
      const text = JSON.stringify({ status: "ok", ...(repair && { repair }), artifacts: [chart], ...(notes.length > 0 && { notes }) });
      return { status: "ok", text, error: null, artifacts: [answer.artifact], findings };
    }),
};
