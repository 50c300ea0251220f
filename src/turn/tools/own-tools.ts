import { z } from "zod";
import type { InterpreterTurn } from "../../interpreter/interpreter-turn.ts";
import type { ToolResult } from "../../interpreter/tool-result.ts";
import { readCoverage } from "../../protocol/coverage-event.ts";
import { shortenedCellNote, turnToolDescriptions } from "../../prompts/turn-prompts.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { TurnParts } from "../turn-request.ts";
import type { Ledger } from "../ledger.ts";
import { fromToolCallResult, type CallResult, type OpenCall } from "../steps/turn-calls.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool, type ChartToolResult } from "./interpreter-tools.ts";

/** A tool in the form that the steps of a turn run. */
export type TurnTool = Tool<OpenCall, CallResult>;

export function toTurnTool<Context>(tool: Tool<Context>, createContext: (call: OpenCall) => Context): TurnTool {
  return { ...tool, run: async (input, call) => fromToolCallResult(await tool.run(input, createContext(call))) };
}

export interface OwnToolsOptions extends Pick<TurnParts, "conversation" | "ledger" | "emit"> {
  readonly interpreter: InterpreterTurn;
  /** Without a sandbox, the turn has no `code_interpreter` and `python_code_edit`. */
  readonly hasSandbox: boolean;
  readonly signal: AbortSignal;
}

/** Creates the built-in tools of a turn: Python, charts and `final_response`. */
export function createOwnTools(options: OwnToolsOptions): readonly TurnTool[] {
  const { interpreter, conversation, ledger, signal } = options;
  const chart = { turn: interpreter, readRows: conversation.readChartRows, signal };
  const cells = options.hasSandbox ? [codeInterpreterTool, pythonCodeEditTool] : [];
  return [
    ...cells.map((tool) => createCellTool(tool, options)),
    { ...renderChartTool, run: async (input) => toChartCall(await renderChartTool.run(input, chart)) },
    toTurnTool(finalResponseTool, () => ledger),
  ];
}

function toChartCall(result: ChartToolResult): CallResult {
  return { ...fromToolCallResult(result), findings: result.findings };
}

function createCellTool(tool: typeof codeInterpreterTool, { interpreter, ledger, emit, signal }: OwnToolsOptions): TurnTool {
  const name = tool.name as "code_interpreter" | "python_code_edit";
  return {
    ...tool,
    async run(input, { callId }) {
      const result = await tool.run(input, {
        turn: interpreter,
        signal,
        onCell: (call) => emit({ type: "cell-start", callId, step: ledger.steps, tool: name, ...call }),
        onOutput: (stream, text) => emit({ type: "cell-output", callId, stream, text }),
      });
      return { ...fromToolCallResult(result), ...toCellReport(result, interpreter) };
    },
  };
}

function toCellReport(
  { outcome, findings, resultAlias, artifacts, error }: ToolResult,
  { last }: InterpreterTurn,
): Pick<CallResult, "cell" | "findings" | "brief"> {
  if (outcome === null) return {};
  const { code, postProcessingContract } = last!.call;
  const { inputAliases, reason } = postProcessingContract;
  const isOk = outcome.status === "ok";
  const coverage = readCoverage(outcome.diagnostics);
  const cell = { isOk, code, inputAliases, reason, coverage, sandboxMs: outcome.timing.totalMs };
  if (error !== null) return { cell, findings };
  const brief = JSON.stringify({
    status: "ok",
    ...(resultAlias === null ? {} : { resultAlias }),
    artifacts: artifacts.map(({ kind, contentHash, title }) => ({ kind, contentHash, title })),
    note: shortenedCellNote,
  });
  return { cell, findings, brief };
}

/** Ends the turn. Refuses only a call without an answer; extra fields are ignored. */
const finalResponseTool: Tool<Ledger> = defineTool({
  name: "final_response",
  description: turnToolDescriptions.final_response,
  input: z.object({ answer: z.string().trim().min(1).describe(turnToolDescriptions.finalAnswer) }).meta({ additionalProperties: false }),
  annotations: {},
  refusal: { lead: "The answer was not accepted", code: "SCHEMA_VALIDATION_FAILED", examples: [{ answer: "The mean price is 102.99." }] },
  async run({ answer }, ledger: Ledger) {
    ledger.finalResponse = answer;
    return { status: "ok", text: '{"status":"ok"}', error: null };
  },
});
