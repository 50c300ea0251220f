import path from "node:path";
import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  type ResourceLink,
  type ResourceTemplateType,
} from "@modelcontextprotocol/server";
import type { ArtifactStore, ArtifactType } from "../../artifacts/artifact-store.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { describeExecute, executeGuideUri } from "../../prompts/describe-execute.ts";
import { describeDataLink, resourceTexts } from "../../prompts/mcp-server.ts";
import type { McpParts } from "./mcp-parts.ts";
import type { ServedResources } from "./surface.ts";
import type { SurfaceOptions } from "./create-surface.ts";
import type { ConnectionAccess } from "./connections/connection-access.ts";
import type { EvidenceFormat, EvidenceItem } from "../../evidence/evidence-store.ts";
import { readFile } from "node:fs/promises";
import { statSync } from "node:fs";

const PAGE_SIZE = 100;

/** Serves data in pages, images and charts by hash, the app that draws charts, and the guide to `execute`. */
export function createMcpResources(parts: McpParts, { registry, access, tenant }: Omit<SurfaceOptions, "ownTools">): ServedResources {
  const guide: Resource = { uri: executeGuideUri, name: "execute", title: resourceTexts.executeGuideTitle, mimeType: "text/plain" };

  async function readDataPage(address: DataAddress, uri: string, signal: AbortSignal): Promise<ReadResourceResult | null> {
    const isOfThisClient = access.isByHandle === (address.handle !== null);
    const connection = isOfThisClient ? access.find(address.handle ?? "") : null;
    if (connection === null || connection.evidence.get(address.alias) === null) return null;
    const endUse = registry.use(connection);
    try {
      const answer = await connection.data.readData({ alias: address.alias, offset: address.offset }, { signal });
      if (!answer.ok) throw new SluiceError({ code: "DATA_NOT_READ", message: answer.toolError.summary, hint: answer.toolError.hints[0] });
      return { contents: [{ uri, mimeType: "application/json", text: withNextUri(answer.json, address) }] };
    } finally {
      endUse();
    }
  }

  async function readArtifact(contentHash: string, uri: string): Promise<ReadResourceResult | null> {
    const found = await registry.artifactsOf(tenant).read(contentHash, access.subject());
    if (found === null) return null;
    const bytes = Buffer.from(found.bytes.buffer, found.bytes.byteOffset, found.bytes.byteLength);
    if (found.type === "png") return { contents: [{ uri, mimeType: "image/png", blob: bytes.toString("base64") }] };
    return { contents: [{ uri, mimeType: "application/json", text: bytes.toString("utf8") }] };
  }

  return {
    templates: createTemplates(access),
    async list(cursor) {
      const fixed = [guide, ...(hasChartApp(parts) ? [chartAppResource] : [])];
      const items = access.own === null ? [] : [...access.own.evidence.toolOutputsByAlias.values()];
      const start = parseCursor(cursor, items.length);
      const data = items.slice(start, start + PAGE_SIZE).map((item): Resource => {
        const { type: _type, ...resource } = linkTo(item, null);
        return resource;
      });
      const next = start + PAGE_SIZE;
      return { resources: start === 0 ? [...fixed, ...data] : data, nextCursor: next < items.length ? String(next) : undefined };
    },
    async read(uri, signal) {
      if (uri === chartAppUri) return await readChartApp(parts);
      if (uri === executeGuideUri) return { contents: [{ uri, mimeType: "text/plain", text: describeExecuteGuide(parts) }] };
      const contentHash = /^sluice:\/\/artifacts\/([0-9a-f]{64})$/.exec(uri)?.[1];
      if (contentHash !== undefined) return await readArtifact(contentHash, uri);
      const address = parseDataUri(uri);
      return address === null ? null : await readDataPage(address, uri, signal);
    },
  };
}

function createTemplates({ isByHandle }: ConnectionAccess): ResourceTemplateType[] {
  const uriTemplate = isByHandle ? "sluice://sessions/{session}/data/{alias}{?offset}" : "sluice://data/{alias}{?offset}";
  return [
    { uriTemplate, name: "data", ...resourceTexts.data, mimeType: "application/json" },
    { uriTemplate: "sluice://artifacts/{sha256}", name: "artifact", ...resourceTexts.artifacts },
  ];
}

/** Adds the URI of the next page, or null. Edits the JSON text, because parsing it would round large numbers. */
function withNextUri(json: string, address: DataAddress): string {
  const { nextOffset } = JSON.parse(json) as { nextOffset?: number | null };
  const next = typeof nextOffset === "number" ? toDataUri({ ...address, offset: nextOffset }) : null;
  return `{"next":${JSON.stringify(next)},${json.slice(1)}`;
}

/** Accepts only a `nextCursor` that `list` has returned. */
function parseCursor(cursor: string | undefined, count: number): number {
  if (cursor === undefined) return 0;
  const start = Number(cursor);
  if (Number.isInteger(start) && start > 0 && start < count && start % PAGE_SIZE === 0) return start;
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown cursor ${JSON.stringify(cursor)}: use the nextCursor of an earlier list.`,
  );
}

function describeExecuteGuide({ configuration: { limits, execute } }: McpParts): string {
  return describeExecute({ limits: limits.execute, engine: execute.engine, hasCpython: true, hasIdentity: true });
}

/** `sluice://data/rows_1?offset=50`; for access by handle `sluice://sessions/HANDLE/data/rows_1?offset=50`. */
export interface DataAddress {
  readonly handle: string | null;
  readonly alias: string;
  readonly offset: number;
}

const dataUri = /^sluice:\/\/(?:sessions\/(?<handle>[\w-]+)\/)?data\/(?<alias>[^/?#]+)(?:\?offset=(?<offset>\d{1,15}))?$/u;

export function toDataUri({ handle, alias, offset }: DataAddress): string {
  const prefix = handle === null ? "" : `sessions/${handle}/`;
  return `sluice://${prefix}data/${encodeURIComponent(alias)}${offset === 0 ? "" : `?offset=${offset}`}`;
}

export function parseDataUri(uri: string): DataAddress | null {
  const { handle = null, alias = "", offset = "0" } = dataUri.exec(uri)?.groups ?? {};
  const decoded = decode(alias);
  return decoded === null || decoded === "" ? null : { handle, alias: decoded, offset: Number(offset) };
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

/** Links to the complete data of an alias. The pages are JSON whatever the format of the data. */
export function linkTo({ alias, bytes, format, shape }: EvidenceItem, handle: string | null): ResourceLink {
  return {
    type: "resource_link",
    uri: toDataUri({ handle, alias, offset: 0 }),
    name: alias,
    description: describeDataLink({ alias, rows: shape.rows, bytes, mimeType: mimeTypes[format] }),
    mimeType: "application/json",
  };
}

/** A tenant's artifact store whose URLs are the URIs that MCP clients read. */
export interface TenantArtifacts {
  storeOf(subject: string | null): ArtifactStore;
  /** Reads only what this subject put through `storeOf`: others can share the underlying store, and a hash is not a secret. */
  read(contentHash: string, subject: string | null): Promise<{ readonly type: ArtifactType; readonly bytes: Uint8Array } | null>;
}

/** When there are more, the artifact published longest ago can no longer be read by its URI. */
const MAX_ADDRESSED_ARTIFACTS = 10_000;

export function addressArtifacts(store: ArtifactStore): TenantArtifacts {
  const types = new Map<string, ArtifactType>();
  const toKey = (contentHash: string, subject: string | null): string => JSON.stringify([contentHash, subject]);
  return {
    storeOf: (subject) => ({
      async put(content) {
        const stored = await store.put(content);
        const key = toKey(stored.contentHash, subject);
        types.delete(key);
        types.set(key, content.type);
        if (types.size > MAX_ADDRESSED_ARTIFACTS) types.delete(types.keys().next().value!);
        return { ...stored, url: `sluice://artifacts/${stored.contentHash}` };
      },
      get: (contentHash, type) => store.get(contentHash, type),
    }),
    async read(contentHash, subject) {
      const type = types.get(toKey(contentHash, subject));
      const bytes = type === undefined ? null : await store.get(contentHash, type);
      return type === undefined || bytes === null ? null : { type, bytes };
    },
  };
}

/** The app that draws charts in hosts that support MCP Apps: one HTML file that needs no network. */
const chartAppUri = "ui://sluice/chart.html";
export const chartAppMeta: Readonly<Record<string, unknown>> = { ui: { resourceUri: chartAppUri }, "ui/resourceUri": chartAppUri };

const chartAppMimeType = "text/html;profile=mcp-app";

/** Built from `web/`. The path is the same from the sources and from the package. */
const builtChartApp = path.join(import.meta.dirname, "../../../dist/web/chart-app.html");

export function hasChartApp({ chartAppFile = builtChartApp }: McpParts): boolean {
  return statSync(chartAppFile, { throwIfNoEntry: false })?.isFile() === true;
}

const chartAppResource: Resource = {
  uri: chartAppUri,
  name: "chart-app",
  ...resourceTexts.chartApp,
  mimeType: chartAppMimeType,
};

async function readChartApp({ chartAppFile = builtChartApp }: McpParts): Promise<ReadResourceResult> {
  const text = await readFile(chartAppFile, "utf8").catch((cause: unknown) => {
    throw new SluiceError({
      code: "CHART_APP_NOT_BUILT",
      message: "The chart app is not built.",
      hint: "Run `npm run setup`. Charts are also in the structured content of each result, and as a table in its text.",
      cause,
    });
  });
  const ui = { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: false };
  return { contents: [{ uri: chartAppUri, mimeType: chartAppMimeType, text, _meta: { ui } }] };
}
