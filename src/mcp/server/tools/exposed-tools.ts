import { createEnvelope } from "../../../errors/envelope.ts";
import { isRecord } from "../../../errors/is-record.ts";
import { SluiceError } from "../../../errors/sluice-error.ts";
import { callBackendTool, type BackendReply } from "../../../tools/call-backend-tool.ts";
import type { JsonSchema } from "../../../tools/contract.ts";
import type { CatalogTool } from "../../../tools/create-tool-catalog.ts";
import type { McpParts } from "../mcp-parts.ts";
import { toErrorReply, type ToolReply } from "../results/to-call-result.ts";
import { outputSchemas } from "./output-schemas.ts";
import { linksTo, type SluiceCall, type SluiceTool } from "./sluice-tool.ts";

/** Tools of the servers that the configuration exposes: called like any other backend tool, their outputs kept whole, a preview given. */
export async function listExposedTools(parts: McpParts, signal: AbortSignal): Promise<readonly SluiceTool[]> {
  const exposed = exposedServers(parts);
  if (exposed.size === 0) return [];
  const { tools } = await parts.catalog.list(signal);
  return tools.filter(({ tool }) => exposed.has(tool.server)).map((known) => toSluiceTool(parts, known));
}

/** One of them, also by its full name and when its server is down: then the call says so. */
export async function findExposedTool(parts: McpParts, name: string, signal: AbortSignal): Promise<SluiceTool | null> {
  const exposed = exposedServers(parts);
  if (exposed.size === 0) return null;
  const resolved = await parts.catalog.resolve(name, signal);
  if (resolved.ok) return exposed.has(resolved.tool.tool.server) ? toSluiceTool(parts, resolved.tool, name) : null;
  if (resolved.envelope.error_code !== "UPSTREAM_UNREACHABLE") return null;
  return { listing: { name, inputSchema: { type: "object" } }, run: async () => toErrorReply(resolved.envelope) };
}

function exposedServers({ configuration }: McpParts): ReadonlySet<string> {
  return new Set(Object.entries(configuration.mcpServers).flatMap(([name, { expose }]) => (expose === true ? [name] : [])));
}

function toSluiceTool(parts: McpParts, known: CatalogTool, name: string = known.name): SluiceTool {
  const { title, description, inputSchema, annotations } = known.tool;
  return {
    listing: {
      name,
      ...(title === undefined ? {} : { title }),
      description,
      inputSchema: { ...withoutHeaders(inputSchema), type: "object" },
      outputSchema: outputSchemas["exposed"]!,
      annotations: Object.fromEntries(Object.entries(annotations).filter(([, value]) => value !== undefined)),
    },
    run: (call) => runExposed(parts, { name, known }, call),
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

interface Exposed {
  readonly name: string;
  readonly known: CatalogTool;
}

async function runExposed(parts: McpParts, { name, known }: Exposed, call: SluiceCall): Promise<ToolReply> {
  const { state } = call.entered;
  const refusal = state.refusalOf(known.tool);
  if (refusal !== null) return toErrorReply(refusal);
  const reply = await callBackendTool({
    catalog: parts.catalog,
    policy: parts.policy,
    name,
    args: call.args,
    signal: call.signal,
    timeoutMs: parts.configuration.limits.mcp.timeoutMs,
    onProgress: ({ progress, total, message }) => call.progress.say(message ?? `${progress}${total === undefined ? "" : ` of ${total}`}`),
    ...state.toCallExtras(known.tool),
  });
  return reply.ok ? await keep(name, reply, call) : toFailed(name, reply);
}

async function keep(name: string, { tool, answer, warnings }: Extract<BackendReply, { ok: true }>, call: SluiceCall): Promise<ToolReply> {
  const { evidence } = call.entered.session;
  try {
    const item = await evidence.keep({ tool: tool.fullName, arguments: call.args, ...answer });
    const aliases = [item.alias, ...item.attachments];
    const previews = aliases.map((alias) => evidence.preview(alias));
    const rest = JSON.stringify({ status: "ok", aliases, ...(warnings.length === 0 ? {} : { warnings }) });
    const cut = previews.flatMap(({ alias, detail }) => (alias === null || detail === "whole" ? [] : [alias]));
    return {
      json: `${rest.slice(0, -1)},"previews":[${previews.map(({ json }) => json).join(",")}]}`,
      isError: false,
      links: linksTo(call, evidence, cut, 0),
    };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const summary = `The tool answered, but its result could not be kept: ${error.message}`;
    const hints = error.hint === undefined ? [] : [error.hint];
    return toErrorReply(createEnvelope({ code: "STORAGE_UNAVAILABLE", tool: name, summary, hints, retryable: false }));
  }
}

function toFailed(name: string, { failure }: Extract<BackendReply, { ok: false }>): ToolReply {
  if (failure.kind === "envelope") return toErrorReply(failure.envelope);
  return toErrorReply(createEnvelope({ code: "TOOL_EXECUTION_ERROR", tool: name, summary: `${failure.type}: ${failure.message}` }));
}
