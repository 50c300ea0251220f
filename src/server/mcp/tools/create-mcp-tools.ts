import { dataTools } from "../../../data/data-tools.ts";
import { summarizeExecute } from "../../../prompts/describe-execute.ts";
import { runBackendTool, toToolError } from "../../../execute/run-backend-tool.ts";
import { toErrorResult, type Tool, type ToolCallResult } from "../../../tools/tool.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool } from "../../../turn/tools/interpreter-tools.ts";
import type { McpParts } from "../mcp-parts.ts";
import type { McpCallContext } from "../surface.ts";
import { chartAppMeta, hasChartApp } from "../create-mcp-resources.ts";
import type { EnteredConnection } from "../connections/connection-access.ts";
import { isRecord } from "../../../text/json.ts";
import type { JsonSchema } from "../../../tools/backend-tool.ts";
import type { CatalogTool } from "../../../tools/create-tool-catalog.ts";
import type { ToolPolicy } from "../../../tools/tool-policy.ts";

/** A call of an MCP client, with the connection that it runs on. */
interface McpCall extends McpCallContext {
  readonly entered: EnteredConnection;
}

export interface McpTool extends Tool<McpCall> {
  /** `_meta` of its listing. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** Sluice's own tools, shared by all clients of a process. */
export function createMcpTools(parts: McpParts): ReadonlyMap<string, McpTool> {
  const { runtime, catalog, policy, configuration } = parts;
  const { engine } = configuration.execute;
  const { execute: limits, mcp } = configuration.limits;
  const codeMode = runtime.createCodeModeTools({ catalog, policy, engine, limits, toolTimeoutMs: mcp.timeoutMs, hasIdentity: true });
  const meta = hasChartApp(parts) ? chartAppMeta : undefined;
  const tools: McpTool[] = [
    ...[codeInterpreterTool, pythonCodeEditTool].map((tool) => ({
      ...tool,
      meta,
      run: (input: unknown, call: McpCall) => runCellTool(tool, input, call),
    })),
    { ...renderChartTool, meta, run: renderChart },
    ...dataTools.map((tool): McpTool => ({
      ...tool,
      run: (input, { entered, signal }) => tool.run(input, { data: entered.connection.data, signal }),
    })),
    ...codeMode.map((tool): McpTool => ({
      ...tool,
      description: tool.name === "execute" ? summarizeExecute({ engine, hasCpython: true }) : tool.description,
      run: (input, { entered: { connection, identity }, signal, approve }) =>
        tool.run(input, { evidence: connection.evidence, identity, signal, policy: policyWith(policy, approve) }),
    })),
  ];
  return new Map(tools.map((tool) => [tool.name, tool]));
}

/** A client that can show a question is asked; otherwise the policy refuses, and its error says how to allow the tool. */
function policyWith(policy: ToolPolicy, approve: McpCall["approve"]): ToolPolicy {
  return approve === undefined ? policy : policy.approvedBy(approve);
}

async function runCellTool(
  tool: typeof codeInterpreterTool,
  input: unknown,
  { entered, progress, signal }: McpCall,
): Promise<ToolCallResult> {
  const { connection, keepsSandbox } = entered;
  const endCell = connection.beginCell(progress);
  try {
    return await tool.run(input, { turn: connection.turn, keepsSandbox, signal });
  } finally {
    endCell();
  }
}

async function renderChart(input: unknown, { entered: { connection }, signal }: McpCall): Promise<ToolCallResult> {
  return await renderChartTool.run(input, { turn: connection.turn, readRows: connection.data.chartRows, signal });
}

/** Tools of the backend servers that the configuration exposes. Their complete outputs are kept as evidence; the client gets a preview. */
export async function listExposedTools(parts: McpParts, signal: AbortSignal): Promise<readonly McpTool[]> {
  const servers = exposedServers(parts);
  if (servers.size === 0) return [];
  const { tools } = await parts.catalog.list(signal);
  return tools.filter(({ tool }) => servers.has(tool.server)).map((catalogTool) => toMcpTool(parts, catalogTool));
}

/** Finds an exposed tool by its bare or full name. When its server is down, returns a tool whose calls return that error. */
export async function findExposedTool(parts: McpParts, name: string, signal: AbortSignal): Promise<McpTool | null> {
  const servers = exposedServers(parts);
  if (servers.size === 0) return null;
  const resolved = await parts.catalog.resolve(name, signal);
  if (resolved.ok) return servers.has(resolved.tool.tool.server) ? toMcpTool(parts, resolved.tool, name) : null;
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

function toMcpTool(parts: McpParts, catalogTool: CatalogTool, name: string = catalogTool.name): McpTool {
  const { title, description, inputSchema, annotations } = catalogTool.tool;
  return {
    name,
    title,
    description,
    annotations,
    inputSchema: { ...withoutHeaderMarks(inputSchema), type: "object" },
    run: (args, call) => runExposedTool(parts, { name, catalogTool, args }, call),
  };
}

/** Removes `x-mcp-header`: which arguments travel in headers concerns only us and the backend. */
function withoutHeaderMarks(schema: JsonSchema): JsonSchema {
  const { properties } = schema;
  if (!isRecord(properties)) return schema;
  const entries = Object.entries(properties).map(([name, property]) => {
    if (!isRecord(property)) return [name, property];
    const { "x-mcp-header": _header, ...rest } = property;
    return [name, rest];
  });
  return { ...schema, properties: Object.fromEntries(entries) };
}

async function runExposedTool(
  parts: McpParts,
  { name, catalogTool, args }: { readonly name: string; readonly catalogTool: CatalogTool; readonly args: unknown },
  { entered, progress, signal, approve }: McpCall,
): Promise<ToolCallResult> {
  const { evidence } = entered.connection;
  const policy = policyWith(parts.policy, approve);
  const result = await runBackendTool({
    ...{ catalog: parts.catalog, policy, identity: entered.identity, evidence, name, tool: catalogTool, args, signal },
    timeoutMs: parts.configuration.limits.mcp.timeoutMs,
    onProgress: ({ progress: done, total, message }) => progress.report(message ?? `${done}${total === undefined ? "" : ` of ${total}`}`),
  });
  if (!result.ok) return toErrorResult(toToolError(name, result.failure));
  const { aliases, warnings } = result;
  const previews = aliases.map((alias) => evidence.preview(alias));
  const head = JSON.stringify({ status: "ok", aliases, warnings: warnings.length === 0 ? undefined : warnings });
  const text = `${head.slice(0, -1)},"previews":[${previews.map(({ json }) => json).join(",")}]}`;
  const shortened = previews.flatMap(({ alias, detail }) => (alias === null || detail === "whole" ? [] : [alias]));
  const cutAliases = shortened.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > 0);
  return { status: "ok", text, error: null, aliases, cutAliases };
}
