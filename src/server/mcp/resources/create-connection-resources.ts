import path from "node:path";
import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  type ResourceLink,
  type ResourceTemplateType,
} from "@modelcontextprotocol/server";
import { SluiceError } from "../../../errors/sluice-error.ts";
import { describeExecute, executeGuideUri } from "../../../prompts/describe-execute.ts";
import type { McpParts, ServedResources } from "../mcp-parts.ts";
import type { SurfaceOptions } from "../create-mcp-server.ts";
import type { ConnectionAccess } from "../connections/connection-access.ts";
import type { EvidenceFormat, EvidenceItem } from "../../../evidence/evidence-store.ts";
import { readFile } from "node:fs/promises";
import { statSync } from "node:fs";

const PAGE = 100;

/** Data in pages, pictures and charts by their hash, the program that draws charts, and the guide to `execute`. */
export function createConnectionResources(parts: McpParts, { registry, access, tenant }: SurfaceOptions): ServedResources {
  const chartApp = parts.chartAppFile ?? builtChartApp;
  const guide: Resource = { uri: executeGuideUri, name: "execute", title: "How scripts of execute work", mimeType: "text/plain" };

  async function readData(address: DataAddress, uri: string, signal: AbortSignal): Promise<ReadResourceResult | null> {
    const isHere = access.isByHandle === (address.session !== null);
    const session = isHere ? access.find(address.session ?? "") : null;
    if (session === null || session.evidence.get(address.alias) === null) return null;
    const leave = registry.use(session);
    try {
      const answer = await session.data.readData({ alias: address.alias, offset: address.offset }, { signal });
      if (!answer.ok)
        throw new SluiceError({ code: "DATA_NOT_READ", message: answer.toolError.summary, ...hintOf(answer.toolError.hints) });
      return { contents: [{ uri, mimeType: "application/json", text: withNext(answer.json, address) }] };
    } finally {
      leave();
    }
  }

  async function readArtifact(contentHash: string, uri: string): Promise<ReadResourceResult | null> {
    const found = await registry.artifactsOf(tenant).read(contentHash);
    if (found === null) return null;
    const bytes = Buffer.from(found.bytes.buffer, found.bytes.byteOffset, found.bytes.byteLength);
    if (found.type === "png") return { contents: [{ uri, mimeType: "image/png", blob: bytes.toString("base64") }] };
    return { contents: [{ uri, mimeType: "application/json", text: bytes.toString("utf8") }] };
  }

  return {
    templates: templatesOf(access),
    async list(cursor) {
      const fixed = [guide, ...(hasChartApp(chartApp) ? [chartAppResource] : [])];
      const items = access.own === null ? [] : [...access.own.evidence.toolOutputsByAlias.values()];
      const from = toStart(cursor, items.length);
      const data = items.slice(from, from + PAGE).map((item): Resource => {
        const { type: _type, ...resource } = linkTo(item, null);
        return resource;
      });
      const next = from + PAGE;
      return { resources: from === 0 ? [...fixed, ...data] : data, ...(next < items.length ? { nextCursor: String(next) } : {}) };
    },
    async read(uri, signal) {
      if (uri === chartAppUri) return await readChartApp(chartApp);
      if (uri === executeGuideUri) return { contents: [{ uri, mimeType: "text/plain", text: guideOf(parts) }] };
      const contentHash = /^sluice:\/\/artifacts\/([0-9a-f]{64})$/.exec(uri)?.[1];
      if (contentHash !== undefined) return await readArtifact(contentHash, uri);
      const address = parseDataUri(uri);
      return address === null ? null : await readData(address, uri, signal);
    },
  };
}

function templatesOf({ isByHandle }: ConnectionAccess): ResourceTemplateType[] {
  return [
    {
      uriTemplate: isByHandle ? sessionDataTemplate : dataTemplate,
      name: "data",
      title: "Data by alias, in pages",
      description: "Rows of an alias as JSON; next is the address of the page after it.",
      mimeType: "application/json",
    },
    {
      uriTemplate: "sluice://artifacts/{sha256}",
      name: "artifact",
      title: "Pictures and charts",
      description: "By the hash of their bytes.",
    },
  ];
}

/** The page with the address of the one after it, null at the end. Put in front, so that numbers stay as they are written. */
function withNext(json: string, address: DataAddress): string {
  const { nextOffset } = JSON.parse(json) as { nextOffset?: number | null };
  const next = typeof nextOffset === "number" ? toDataUri({ ...address, offset: nextOffset }) : null;
  return `{"next":${JSON.stringify(next)},${json.slice(1)}`;
}

/** What we gave as `nextCursor` ourselves, and nothing else. */
function toStart(cursor: string | undefined, count: number): number {
  if (cursor === undefined) return 0;
  const start = Number(cursor);
  if (Number.isInteger(start) && start > 0 && start < count && start % PAGE === 0) return start;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The cursor ${JSON.stringify(cursor)} is none that a list here gave.`);
}

function guideOf({ configuration: { limits, execute } }: McpParts): string {
  return describeExecute({ limits: limits.execute, engine: execute.engine, hasCpython: true, hasIdentity: true });
}

function hintOf([hint]: readonly string[]): { hint?: string } {
  return hint === undefined ? {} : { hint };
}

/** `sluice://data/rows_1?offset=50`; of a session that is named by its handle `sluice://sessions/HANDLE/data/rows_1`. */
export interface DataAddress {
  readonly session: string | null;
  readonly alias: string;
  readonly offset: number;
}

const pattern = /^sluice:\/\/(?:sessions\/(?<session>[\w-]+)\/)?data\/(?<alias>[^/?#]+)(?:\?offset=(?<offset>\d{1,15}))?$/u;

const dataTemplate = "sluice://data/{alias}{?offset}";
const sessionDataTemplate = "sluice://sessions/{session}/data/{alias}{?offset}";

export function toDataUri({ session, alias, offset }: DataAddress): string {
  const place = session === null ? "" : `sessions/${session}/`;
  return `sluice://${place}data/${encodeURIComponent(alias)}${offset === 0 ? "" : `?offset=${offset}`}`;
}

export function parseDataUri(uri: string): DataAddress | null {
  const { session = null, alias = "", offset = "0" } = pattern.exec(uri)?.groups ?? {};
  const name = decode(alias);
  return name === null || name === "" ? null : { session, alias: name, offset: Number(offset) };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const mimeTypes: Readonly<Record<EvidenceFormat, string>> = {
  json: "application/json",
  jsonl: "application/jsonl",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  parquet: "application/vnd.apache.parquet",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  text: "text/plain",
  bytes: "application/octet-stream",
};

/** Where the whole of an output can be read, in pages. The pages are JSON whatever the data is. */
export function linkTo({ alias, bytes, format, shape }: EvidenceItem, session: string | null): ResourceLink {
  const rows = shape.rows === null ? "" : `${shape.rows} rows, `;
  return {
    type: "resource_link",
    uri: toDataUri({ session, alias, offset: 0 }),
    name: alias,
    description: `The whole of ${alias} (${rows}${bytes} bytes of ${mimeTypes[format]}), in pages of JSON rows: each names the next.`,
    mimeType: "application/json",
  };
}

/** The program that draws charts in hosts that can show MCP Apps. It is one HTML file and asks for nothing from the network. */
const chartAppUri = "ui://sluice/chart.html";
export const chartAppMeta: Readonly<Record<string, unknown>> = { ui: { resourceUri: chartAppUri }, "ui/resourceUri": chartAppUri };

const mimeType = "text/html;profile=mcp-app";

/** Built from `web/`; the same place from the sources and from the package. */
export const builtChartApp: string = path.join(import.meta.dirname, "../../../../dist/web/chart-app.html");

export function hasChartApp(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true;
}

const chartAppResource: Resource = {
  uri: chartAppUri,
  name: "chart-app",
  title: "Chart",
  description: "Draws the charts of a result. Self-contained; no network.",
  mimeType,
};

async function readChartApp(file: string): Promise<ReadResourceResult> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new SluiceError({
      code: "CHART_APP_NOT_BUILT",
      message: "The program that draws charts is not built here.",
      hint: "Run `npm run setup`. Charts are also in the structured content of each result, and as a table in its text.",
      cause,
    });
  });
  return {
    contents: [
      { uri: chartAppUri, mimeType, text, _meta: { ui: { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: false } } },
    ],
  };
}
