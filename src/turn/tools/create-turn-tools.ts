import { dynamicTool, jsonSchema, type ToolSet } from "ai";
import { z } from "zod";
import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import { codeInterpreterCallSchema } from "../../interpreter/contract/code-interpreter-call.ts";
import { pythonCodeEditCallSchema } from "../../interpreter/python-code-edit.ts";
import { toolDescriptions } from "../../interpreter/tool-descriptions.ts";
import { renderChartCallSchema } from "../../charts/render-chart.ts";
import type { CatalogTool, ToolList } from "../../tools/create-tool-catalog.ts";
import type { Turn } from "../open-turn.ts";
import { approvingPolicy } from "./approving-policy.ts";
import { callCodeMode } from "./call-code-mode.ts";
import { callMcpSkillSchema, callMcpSkill } from "./call-mcp-skill.ts";
import { callTool } from "./call-tool.ts";
import { finalResponseSchema } from "./final-response.ts";
import { callCodeInterpreter, callPythonCodeEdit, callRenderChart } from "./run-interpreter-call.ts";
import { callFinalResponse } from "./call-final-response.ts";

/** From here on the model gets discovery and one dispatcher instead of every schema. */
const MAX_TOOL_SCHEMAS = 40;

export interface TurnToolsOptions {
  readonly list: ToolList;
  readonly codeMode: readonly CodeModeTool[];
  readonly hasSandbox: boolean;
  readonly isLast: () => boolean;
}

/** Everything that the model can call in a step. Names are ours or the catalog's; the catalog never gives away one of ours. */
export function createTurnTools(turn: Turn, { list, codeMode, hasSandbox, isLast }: TurnToolsOptions): ToolSet {
  const policy = approvingPolicy(turn, "");
  const usable = list.tools.filter((tool) => policy.judge(tool).verdict !== "refused");
  return {
    ...(usable.length > MAX_TOOL_SCHEMAS
      ? dispatcher(turn, list)
      : Object.fromEntries(usable.map((tool) => [tool.name, backendTool(turn, tool)]))),
    ...(usable.length === 0 ? {} : Object.fromEntries(codeMode.map((tool) => [tool.name, ofCodeMode(turn, tool, list)]))),
    ...(hasSandbox ? ofInterpreter(turn) : {}),
    render_chart: own(renderChartCallSchema, {
      description: toolDescriptions.render_chart,
      run: (input, callId) => callRenderChart(turn, { callId, input }),
    }),
    final_response: own(finalResponseSchema, {
      description: "The last call of every turn: the answer, what it rests on, and which figures it speaks of.",
      run: (input, callId) => callFinalResponse(turn, { callId, input, isLast: isLast() }),
    }),
  };
}

function ofInterpreter(turn: Turn): ToolSet {
  return {
    code_interpreter: own(codeInterpreterCallSchema, {
      description: toolDescriptions.code_interpreter,
      run: (input, callId) => callCodeInterpreter(turn, { callId, input }),
    }),
    python_code_edit: own(pythonCodeEditCallSchema, {
      description: toolDescriptions.python_code_edit,
      run: (input, callId) => callPythonCodeEdit(turn, { callId, input }),
    }),
  };
}

function backendTool(turn: Turn, known: CatalogTool): ToolSet[string] {
  const { description, inputSchema, title } = known.tool;
  return dynamicTool({
    description: description || title || known.name,
    inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
    execute: (args, { toolCallId }) => callTool(turn, { callId: toolCallId, name: known.name, server: known.tool.server, args, known }),
  });
}

function dispatcher(turn: Turn, list: ToolList): ToolSet {
  return {
    call_mcp_skill: own(callMcpSkillSchema, {
      description: `Call one of ${list.tools.length} backend tools by name. search finds them by what they do, get_schema says how each is called.`,
      run: (input, callId) => callMcpSkill(turn, { callId, input, list }),
    }),
  };
}

function ofCodeMode(turn: Turn, tool: CodeModeTool, list: ToolList): ToolSet[string] {
  return dynamicTool({
    description: tool.description,
    inputSchema: jsonSchema(tool.inputSchema as Parameters<typeof jsonSchema>[0]),
    execute: (input, { toolCallId }) => callCodeMode(turn, { callId: toolCallId, tool, input, list }),
  });
}

/** The published schema is strict, and checked by us: a call that breaks it gets an envelope. */
function own(
  schema: z.ZodType,
  { description, run }: { description: string; run: (input: unknown, callId: string) => Promise<string> },
): ToolSet[string] {
  return dynamicTool({
    description,
    inputSchema: jsonSchema(z.toJSONSchema(schema, { io: "input" }) as Parameters<typeof jsonSchema>[0]),
    execute: (input, { toolCallId }) => run(input, toolCallId),
  });
}
