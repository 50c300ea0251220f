import { z } from "zod";
import type { InterpreterTurn } from "../../interpreter/turn.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { TurnParts } from "../turn-request.ts";
import type { Ledger } from "../ledger.ts";
import { toCallResult, type CallResult, type OpenCall } from "../steps/turn-calls.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool, type CellResult } from "./interpreter-tools.ts";

/** A tool as the loop of a turn runs it. */
export type TurnTool = Tool<OpenCall, CallResult>;

export function toTurnTool<Context>(tool: Tool<Context>, contextOf: (call: OpenCall) => Context): TurnTool {
  return { ...tool, run: async (input, call) => toCallResult(await tool.run(input, contextOf(call))) };
}

export interface OwnToolsOptions extends Pick<TurnParts, "conversation" | "ledger" | "emit"> {
  readonly interpreter: InterpreterTurn;
  /** False when no sandbox can be had: then there is no interpreter. */
  readonly hasSandbox: boolean;
  readonly signal: AbortSignal;
}

/** The tools of a turn that are no backend's: Python, charts, and the end of the turn. */
export function createOwnTools(options: OwnToolsOptions): readonly TurnTool[] {
  const { interpreter, conversation, ledger, signal } = options;
  const chart = { turn: interpreter, readRows: conversation.readChartRows, signal };
  const cells = options.hasSandbox ? [codeInterpreterTool, pythonCodeEditTool] : [];
  return [
    ...cells.map((tool) => cellTool(tool, options)),
    toTurnTool(renderChartTool, () => chart),
    toTurnTool(finalResponseTool, () => ledger),
  ];
}

function cellTool(tool: typeof codeInterpreterTool, { interpreter, ledger, emit, signal }: OwnToolsOptions): TurnTool {
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
      return { ...toCallResult(result), ...toCell(result, interpreter) };
    },
  };
}

function toCell(
  { outcome, repair, resultAlias, artifacts, error }: CellResult,
  { last }: InterpreterTurn,
): Pick<CallResult, "cell" | "brief"> {
  if (outcome === null) return {};
  const { code, postProcessingContract } = last!.call;
  const { inputAliases, reason } = postProcessingContract;
  const isOk = outcome.status === "ok";
  const cell = { isOk, code, inputAliases, reason, sparse: repair?.because ?? null, sandboxMs: outcome.timing.totalMs };
  if (error !== null) return { cell };
  const brief = JSON.stringify({
    status: "ok",
    ...(resultAlias === null ? {} : { resultAlias }),
    artifacts: artifacts.map(({ kind, contentHash, title }) => ({ kind, contentHash, title })),
    note: "Cut to make room. The result is whole in Python under its alias.",
  });
  return { cell, brief };
}

/** How a model says that it is done. Only a call without an answer is sent back; fields beside it are ignored. */
const finalResponseTool: Tool<Ledger> = defineTool({
  name: "final_response",
  description: "The last call of every turn: the answer.",
  input: z
    .object({
      answer: z
        .string()
        .trim()
        .min(1)
        .describe("The answer to the user, in Markdown, with its numbers and everything that is missing from it."),
    })
    .meta({ additionalProperties: false }),
  annotations: {},
  refusal: { lead: "The answer was not taken", code: "SCHEMA_VALIDATION_FAILED", examples: [{ answer: "The mean price is 102.99." }] },
  async run({ answer }, ledger: Ledger) {
    ledger.final = answer;
    return { status: "ok", text: '{"status":"ok"}', error: null };
  },
});
