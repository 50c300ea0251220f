import { dataTools } from "../../../data/data-tools.ts";
import { summarizeExecute } from "../../../prompts/describe-execute.ts";
import { runBackendTool, toToolError } from "../../../execute/run-backend-tool.ts";
import { toErrorResult, type Tool, type ToolCallResult } from "../../../tools/tool.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool } from "../../../turn/tools/interpreter-tools.ts";
import type { CallContext, McpParts } from "../mcp-parts.ts";
import { builtChartApp, chartAppMeta, hasChartApp } from "../resources/create-connection-resources.ts";
import type { EnteredConnection } from "../connections/connection-access.ts";
import { isRecord } from "../../../errors/is-record.ts";
import type { JsonSchema } from "../../../tools/backend-tool.ts";
import type { CatalogTool } from "../../../tools/create-tool-catalog.ts";

/** A call of an MCP client, in the session that it entered. */
export interface McpCall extends CallContext {
  readonly entered: EnteredConnection;
}

export interface McpTool extends Tool<McpCall> {
  /** `_meta` of its listing. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** Our own tools: the same objects for every client of a process. */
export function createMcpTools(parts: McpParts): ReadonlyMap<string, McpTool> {
  const { runtime, catalog, policy, configuration } = parts;
  const { engine } = configuration.execute;
  const { execute: limits, mcp } = configuration.limits;
  const codeMode = runtime.createCodeModeTools({ catalog, policy, engine, limits, toolTimeoutMs: mcp.timeoutMs, hasIdentity: true });
  const meta = hasChartApp(parts.chartAppFile ?? builtChartApp) ? chartAppMeta : undefined;
  const tools: McpTool[] = [
    ...[codeInterpreterTool, pythonCodeEditTool].map((tool) => ({
      ...tool,
      meta,
      run: (input: unknown, call: McpCall) => runCell(tool, input, call),
    })),
    { ...renderChartTool, meta, run: drawChart },
    ...dataTools.map((tool): McpTool => ({
      ...tool,
      run: (input, { entered, signal }) => tool.run(input, { data: entered.session.data, signal }),
    })),
    ...codeMode.map((tool): McpTool => ({
      ...tool,
      description: tool.name === "execute" ? summarizeExecute(engine) : tool.description,
      run: (input, { entered: { session, identity }, signal }) => tool.run(input, { evidence: session.evidence, identity, signal }),
    })),
  ];
  return new Map(tools.map((tool) => [tool.name, tool]));
}

async function runCell(tool: typeof codeInterpreterTool, input: unknown, { entered, progress, signal }: McpCall): Promise<ToolCallResult> {
  const { session, keepsSandbox } = entered;
  const endCell = session.beginCell(progress);
  try {
    return await tool.run(input, { turn: session.turn(), keepsSandbox, signal });
  } finally {
    endCell();
  }
}

async function drawChart(input: unknown, { entered: { session }, signal }: McpCall): Promise<ToolCallResult> {
  return await renderChartTool.run(input, { turn: session.turn(), readRows: session.data.chartRows, signal });
}

/** Tools of the servers that the configuration exposes: called like any other backend tool, their outputs kept whole, a preview given. */
export async function listExposedTools(parts: McpParts, signal: AbortSignal): Promise<readonly McpTool[]> {
  const exposed = exposedServers(parts);
  if (exposed.size === 0) return [];
  const { tools } = await parts.catalog.list(signal);
  return tools.filter(({ tool }) => exposed.has(tool.server)).map((known) => toMcpTool(parts, known));
}

/** One of them, also by its full name and when its server is down: then the call says so. */
export async function findExposedTool(parts: McpParts, name: string, signal: AbortSignal): Promise<McpTool | null> {
  const exposed = exposedServers(parts);
  if (exposed.size === 0) return null;
  const resolved = await parts.catalog.resolve(name, signal);
  if (resolved.ok) return exposed.has(resolved.tool.tool.server) ? toMcpTool(parts, resolved.tool, name) : null;
  if (resolved.toolError.error_code !== "UPSTREAM_UNREACHABLE") return null;
  const { toolError } = resolved;
  return {
    name,
    title: name,
    description: "",
    inputSchema: { type: "object" },
    annotations: {},
    run: async () => toErrorResult(toolError),
  };
}

function exposedServers({ configuration }: McpParts): ReadonlySet<string> {
  return new Set(Object.entries(configuration.mcpServers).flatMap(([name, { expose }]) => (expose === true ? [name] : [])));
}

function toMcpTool(parts: McpParts, known: CatalogTool, name: string = known.name): McpTool {
  const { title, description, inputSchema, annotations } = known.tool;
  return {
    ...{ name, title, description, annotations },
    inputSchema: { ...withoutHeaders(inputSchema), type: "object" },
    run: (args, call) => runExposed(parts, { name, known, args }, call),
  };
}

/** Which arguments ride in headers is between us and the server: a client of ours sends arguments. */
function withoutHeaders(schema: JsonSchema): JsonSchema {
  const { properties } = schema;
  if (!isRecord(properties)) return schema;
  const plain = Object.entries(properties).map(([name, property]) => {
    if (!isRecord(property)) return [name, property];
    const { "x-mcp-header": _header, ...rest } = property;
    return [name, rest];
  });
  return { ...schema, properties: Object.fromEntries(plain) };
}

async function runExposed(
  parts: McpParts,
  { name, known, args }: Exposed,
  { entered, progress, signal }: McpCall,
): Promise<ToolCallResult> {
  const { evidence } = entered.session;
  const result = await runBackendTool({
    ...{ catalog: parts.catalog, policy: parts.policy, identity: entered.identity, evidence, name, tool: known, args, signal },
    timeoutMs: parts.configuration.limits.mcp.timeoutMs,
    onProgress: ({ progress: done, total, message }) => progress.say(message ?? `${done}${total === undefined ? "" : ` of ${total}`}`),
  });
  if (!result.ok) return toErrorResult(toToolError(name, result.failure));
  const { aliases, warnings } = result;
  const previews = aliases.map((alias) => evidence.preview(alias));
  const head = JSON.stringify({ status: "ok", aliases, ...(warnings.length === 0 ? {} : { warnings }) });
  const text = `${head.slice(0, -1)},"previews":[${previews.map(({ json }) => json).join(",")}]}`;
  const cut = previews.flatMap(({ alias, detail }) => (alias === null || detail === "whole" ? [] : [alias]));
  const cutAliases = cut.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > 0);
  return { status: "ok", text, error: null, aliases, cutAliases };
}

interface Exposed {
  readonly name: string;
  readonly known: CatalogTool;
  readonly args: unknown;
}
