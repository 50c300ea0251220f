import type { CallToolResult, ContentBlock, ResourceLink, Tool } from "@modelcontextprotocol/server";
import { toErrorResult, type ToolCallResult } from "../../../tools/tool.ts";
import { ellipsize } from "../../../text/clip-text.ts";
import { describeLargeImage, omittedFromTable } from "../../../prompts/mcp-server.ts";
import type { McpCallContext, ServedTool } from "../surface.ts";
import { linkTo } from "../create-mcp-resources.ts";
import type { EnteredConnection, ConnectionAccess } from "../connections/connection-access.ts";
import type { McpTool } from "./create-mcp-tools.ts";
import type { ArtifactStore } from "../../../artifacts/artifact-store.ts";
import type { ArtifactEnvelope, ChartArtifact, ImageArtifact } from "../../../protocol/artifact.ts";
import type { ChartCell } from "../../../protocol/chart-spec.ts";
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
  const images = await readImages(artifacts, connection.artifacts);
  const charts = artifacts.filter((artifact) => artifact.kind === "chart");
  const notes = connection.takeNotes();
  const text = withFields(result.text, { ...entered.fields, ...(notes.length === 0 ? {} : { sandbox_note: notes.join(" ") }) });
  return toCallResult({ ...result, text }, { images, charts, links });
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

export interface PublishedImage {
  readonly artifact: ImageArtifact;
  /** Null when the store no longer has it. */
  readonly bytes: Uint8Array | null;
}

/** Text and structured content hold the same data, except for charts: complete in the structured content, a table in the text. */
export function toCallResult(
  { text, error }: ToolCallResult,
  {
    images = [],
    charts = [],
    links = [],
  }: { images?: readonly PublishedImage[]; charts?: readonly ChartArtifact[]; links?: readonly ResourceLink[] } = {},
): CallToolResult {
  const structured = parseExactJson(text) as Record<string, unknown>;
  return {
    content: [
      { type: "text", text },
      ...charts.map((chart): ContentBlock => ({ type: "text", text: toChartTable(chart) })),
      ...toImageContent(images),
      ...links,
    ],
    structuredContent: charts.length === 0 ? structured : { ...structured, charts },
    isError: error === null ? undefined : true,
  };
}

async function readImages(artifacts: readonly ArtifactEnvelope[], store: ArtifactStore): Promise<PublishedImage[]> {
  const images = artifacts.filter((artifact) => artifact.kind === "image");
  return await Promise.all(images.map(async (artifact) => ({ artifact, bytes: await store.get(artifact.contentHash, "png") })));
}

/** Bytes of inline images per result. Clients reject results of several megabytes, and the model would then see nothing. */
const MAX_INLINE_BYTES = 750_000;

/** Images that fit are inline, with their alt text; the others become links. */
export function toImageContent(images: readonly PublishedImage[]): ContentBlock[] {
  let remaining = MAX_INLINE_BYTES;
  return images.map(({ artifact, bytes }): ContentBlock => {
    if (bytes === null || bytes.length > remaining) return toImageLink(artifact);
    remaining -= bytes.length;
    return toInlineImage(artifact, bytes);
  });
}

function toInlineImage({ alt, url, title }: ImageArtifact, bytes: Uint8Array): ContentBlock {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { type: "image", data, mimeType: "image/png", _meta: { alt, url, title } };
}

function toImageLink({ alt, url, title, contentHash, bytes }: ImageArtifact): ContentBlock {
  return {
    type: "resource_link",
    uri: url,
    name: `${contentHash}.png`,
    title: title ?? alt,
    description: describeLargeImage(alt, bytes),
    mimeType: "image/png",
    size: bytes,
  };
}

const MAX_ROWS = 20;
const MAX_COLUMNS = 12;
const MAX_CELL_CHARACTERS = 80;

/** A chart as a Markdown table of its first rows and columns, with a note of what is omitted. */
function toChartTable({ spec, data, title, url }: ChartArtifact): string {
  const columns = [...new Set(data.flatMap((row) => Object.keys(row)))];
  const shown = columns.slice(0, MAX_COLUMNS);
  const rows = data.slice(0, MAX_ROWS).map((row) => shown.map((column) => toTableCell(row[column] ?? null)));
  const omitted = [
    ...(data.length > MAX_ROWS ? [`${data.length - MAX_ROWS} more rows`] : []),
    ...(columns.length > MAX_COLUMNS ? [`${columns.length - MAX_COLUMNS} more columns`] : []),
  ];
  return [
    `${title ?? "Chart"} (${spec.type} chart, ${data.length} rows)`,
    "",
    toTableRow(shown.map(toTableCell)),
    toTableRow(shown.map(() => "---")),
    ...rows.map(toTableRow),
    ...(omitted.length === 0 ? [] : ["", omittedFromTable(omitted, url)]),
  ].join("\n");
}

function toTableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function toTableCell(value: ChartCell): string {
  if (value === null) return "";
  return ellipsize(String(value).replaceAll(/\s+/g, " ").replaceAll("|", "\\|"), MAX_CELL_CHARACTERS);
}
