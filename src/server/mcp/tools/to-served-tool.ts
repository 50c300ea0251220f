import type { CallToolResult, ContentBlock, ResourceLink, Tool } from "@modelcontextprotocol/server";
import { toErrorResult, type ToolCallResult } from "../../../tools/tool.ts";
import { ellipsize } from "../../../text/clip-text.ts";
import type { CallContext, ServedTool } from "../mcp-parts.ts";
import { linkTo } from "../resources/create-connection-resources.ts";
import type { EnteredConnection, ConnectionAccess } from "../connections/connection-access.ts";
import type { McpTool } from "./create-mcp-tools.ts";
import type { ArtifactStore } from "../../../artifacts/stored-artifact.ts";
import type { ArtifactEnvelope, ChartArtifact, ImageArtifact } from "../../../protocol/artifact.ts";
import type { ChartCell } from "../../../protocol/chart-spec.ts";
import { parseExactJson } from "../../../text/json.ts";

/** A tool as one client sees it. Where there is no connection to tell a session by, its schema has room for the handle. */
export function toServedTool(tool: McpTool, access: ConnectionAccess): ServedTool {
  const listing = toListing(tool);
  const argument = handleArgument(listing);
  return {
    listing: access.isByHandle ? withHandle(listing, argument) : listing,
    async call(given, context) {
      const { [argument]: handle, ...rest } = given;
      const entry = access.enter({ tool: tool.name, handle: access.isByHandle ? handle : undefined });
      if (!entry.ok) return toCallResult(toErrorResult(entry.toolError));
      try {
        return await callInConnection(tool, entry.entered, { args: access.isByHandle ? rest : given, context, access });
      } finally {
        await entry.entered.leave({ wasAborted: context.signal.aborted });
      }
    },
  };
}

interface InSession {
  readonly args: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  readonly access: ConnectionAccess;
}

async function callInConnection(tool: McpTool, entered: EnteredConnection, { args, context, access }: InSession): Promise<CallToolResult> {
  const { session } = entered;
  await session.data.refresh();
  const { cutAliases = [], artifacts = [], ...result } = await tool.run(args, { entered, ...context });
  const links = cutAliases.map((alias) => linkTo(session.evidence.get(alias)!, access.isByHandle ? session.id : null));
  const images = await readImages(artifacts, session.artifacts);
  const charts = artifacts.filter((artifact) => artifact.kind === "chart");
  const text = withFields(result.text, { ...entered.fields, ...notesOf(entered) });
  return toCallResult({ ...result, text }, { images, charts, links });
}

function notesOf({ session }: EnteredConnection): Record<string, unknown> {
  const notes = session.takeNotes();
  return notes.length === 0 ? {} : { sandbox_note: notes.join(" ") };
}

/** Put in front of the answer's own text, so that its numbers stay as they are written. */
function withFields(text: string, fields: Readonly<Record<string, unknown>>): string {
  if (Object.keys(fields).length === 0) return text;
  const rest = text.slice(1).trimStart();
  return `${JSON.stringify(fields).slice(0, -1)}${rest === "}" ? "" : ","}${rest}`;
}

function toListing({ name, title, description, inputSchema, annotations, meta }: McpTool): Tool {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    description,
    inputSchema: inputSchema as Tool["inputSchema"],
    annotations: Object.fromEntries(Object.entries({ title, ...annotations }).filter(([, value]) => value !== undefined)),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

/** A tool of another server may have a `session` of its own. */
function handleArgument({ inputSchema: { properties = {} } }: Tool): string {
  return Object.hasOwn(properties, "session") ? "sluice_session" : "session";
}

function withHandle(listing: Tool, argument: string): Tool {
  const { properties = {} } = listing.inputSchema;
  return { ...listing, inputSchema: { ...listing.inputSchema, properties: { ...properties, [argument]: { type: "string" } } } };
}

export interface ResultContent {
  readonly images?: readonly PublishedImage[];
  readonly charts?: readonly ChartArtifact[];
  readonly links?: readonly ResourceLink[];
}

export interface PublishedImage {
  readonly artifact: ImageArtifact;
  /** Null when the store does not have it any more. */
  readonly bytes: Uint8Array | null;
}

/** The text and the structured form say the same; charts are whole in the structured form, and a table in the text. */
export function toCallResult(
  { text, error }: ToolCallResult,
  { images = [], charts = [], links = [] }: ResultContent = {},
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
    ...(error === null ? {} : { isError: true }),
  };
}

async function readImages(artifacts: readonly ArtifactEnvelope[], store: ArtifactStore): Promise<PublishedImage[]> {
  const images = artifacts.filter((artifact) => artifact.kind === "image");
  return await Promise.all(images.map(async (artifact) => ({ artifact, bytes: await store.get(artifact.contentHash, "png") })));
}

/** What pictures may add to one result. Clients refuse results of some megabytes whole, and a model would see nothing then. */
const INLINE_BYTES = 750_000;

/** Pictures with their alt, as long as they fit; the others as links to where they can be read. */
export function toImageContent(images: readonly PublishedImage[]): ContentBlock[] {
  let room = INLINE_BYTES;
  return images.map(({ artifact, bytes }): ContentBlock => {
    if (bytes === null || bytes.length > room) return toLink(artifact, artifact.bytes);
    room -= bytes.length;
    return toInline(artifact, bytes);
  });
}

function toInline({ alt, url, title }: ImageArtifact, bytes: Uint8Array): ContentBlock {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { type: "image", data, mimeType: "image/png", _meta: { alt, url, ...(title === undefined ? {} : { title }) } };
}

function toLink({ alt, url, title, contentHash }: ImageArtifact, size: number): ContentBlock {
  return {
    type: "resource_link",
    uri: url,
    name: `${contentHash}.png`,
    title: title ?? alt,
    description: `${alt} (${size} bytes, too large to be shown here: read the resource)`,
    mimeType: "image/png",
    size,
  };
}

const MAX_ROWS = 20;
const MAX_COLUMNS = 12;
const MAX_CELL_CHARACTERS = 80;

/** A chart for who reads text: what it shows, and its first rows. What is not shown is said, and where it is. */
function toChartTable({ spec, data, title, url }: ChartArtifact): string {
  const columns = [...new Set(data.flatMap((row) => Object.keys(row)))];
  const shown = columns.slice(0, MAX_COLUMNS);
  const rows = data.slice(0, MAX_ROWS).map((row) => shown.map((column) => toCell(row[column] ?? null)));
  const hidden = [
    ...(data.length > MAX_ROWS ? [`${data.length - MAX_ROWS} more rows`] : []),
    ...(columns.length > MAX_COLUMNS ? [`${columns.length - MAX_COLUMNS} more columns`] : []),
  ];
  return [
    `${title ?? "Chart"} (${spec.type} chart, ${data.length} rows)`,
    "",
    toLine(shown.map(toCell)),
    toLine(shown.map(() => "---")),
    ...rows.map(toLine),
    ...(hidden.length === 0 ? [] : ["", `Not shown here: ${hidden.join(" and ")}. All of it is in ${url}.`]),
  ].join("\n");
}

function toLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function toCell(value: ChartCell): string {
  if (value === null) return "";
  return ellipsize(String(value).replaceAll(/\s+/g, " ").replaceAll("|", "\\|"), MAX_CELL_CHARACTERS);
}
