import type { CallToolResult, ResourceLink, Tool } from "@modelcontextprotocol/server";
import { toErrorResult, type ToolCallResult } from "../../../tools/tool.ts";
import type { McpCallContext, ServedTool } from "../surface.ts";
import { linkTo } from "../create-mcp-resources.ts";
import type { EnteredConnection, ConnectionAccess } from "../connections/connection-access.ts";
import type { McpTool } from "./create-mcp-tools.ts";
import { readPictures, toArtifactContent, type PublishedArtifact } from "./artifact-content.ts";
import { parseExactJson } from "../../../text/json.ts";

/** A tool as one client sees it. For access by handle, its schema gets an argument for the handle. */
export function toServedTool(tool: McpTool, access: ConnectionAccess): ServedTool {
  const listing = toListing(tool);
  const argument = handleArgument(listing);
  return {
    listing: access.isByHandle ? withHandle(listing, argument) : listing,
    async call(given, context) {
      const { [argument]: handle, ...rest } = given;
      const result = access.enter({ tool: tool.name, handle: access.isByHandle ? handle : undefined });
      if (!result.ok) return toCallResult(toErrorResult(result.toolError));
      const { entered } = result;
      try {
        return await callOnConnection(tool, entered, { args: access.isByHandle ? rest : given, context, access });
      } finally {
        await entered.leave({ wasAborted: context.signal.aborted });
      }
    },
  };
}

async function callOnConnection(
  tool: McpTool,
  entered: EnteredConnection,
  { args, context, access }: { args: Readonly<Record<string, unknown>>; context: McpCallContext; access: ConnectionAccess },
): Promise<CallToolResult> {
  const { connection } = entered;
  await connection.data.refresh();
  const { cutAliases = [], artifacts = [], ...result } = await tool.run(args, { entered, ...context });
  const links = cutAliases.map((alias) => linkTo(connection.evidence.get(alias)!, access.isByHandle ? connection.id : null));
  const published = await readPictures(artifacts, connection.artifacts);
  const notes = connection.takeNotes();
  const text = withFields(result.text, { ...entered.fields, ...(notes.length === 0 ? {} : { sandbox_note: notes.join(" ") }) });
  return toCallResult({ ...result, text }, { artifacts: published, links });
}

/** Adds fields to a JSON object. Edits the text, because parsing it would round large numbers. */
function withFields(text: string, fields: Readonly<Record<string, unknown>>): string {
  if (Object.keys(fields).length === 0) return text;
  const rest = text.slice(1).trimStart();
  return `${JSON.stringify(fields).slice(0, -1)}${rest === "}" ? "" : ","}${rest}`;
}

function toListing({ name, title, description, inputSchema, annotations, meta }: McpTool): Tool {
  return { name, title, description, inputSchema: inputSchema as Tool["inputSchema"], annotations: { title, ...annotations }, _meta: meta };
}

/** A tool of a backend server can have an argument `session` of its own. */
function handleArgument({ inputSchema: { properties = {} } }: Tool): string {
  return Object.hasOwn(properties, "session") ? "sluice_session" : "session";
}

function withHandle(listing: Tool, argument: string): Tool {
  const { properties = {} } = listing.inputSchema;
  return { ...listing, inputSchema: { ...listing.inputSchema, properties: { ...properties, [argument]: { type: "string" } } } };
}

/** Text and structured content hold the same data, except for charts: complete in the structured content, a table in the text. */
export function toCallResult(
  { text, error }: ToolCallResult,
  { artifacts = [], links = [] }: { artifacts?: readonly PublishedArtifact[]; links?: readonly ResourceLink[] } = {},
): CallToolResult {
  const structured = parseExactJson(text) as Record<string, unknown>;
  const { content, charts } = toArtifactContent(artifacts);
  return {
    content: [{ type: "text", text }, ...content, ...links],
    structuredContent: charts.length === 0 ? structured : { ...structured, charts },
    isError: error === null ? undefined : true,
  };
}
