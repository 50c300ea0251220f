import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplateType,
} from "@modelcontextprotocol/server";
import { SluiceError } from "../../../errors/sluice-error.ts";
import { describeExecute } from "../../../execute/description/describe-execute.ts";
import { executeGuideUri } from "../../../execute/description/summarize-execute.ts";
import type { ServedResources } from "../contract.ts";
import type { McpParts } from "../mcp-parts.ts";
import type { SessionRegistry } from "../sessions/create-session-registry.ts";
import type { SessionAccess } from "../sessions/session-access.ts";
import { builtChartApp, chartAppResource, chartAppUri, hasChartApp, readChartApp } from "./chart-app.ts";
import { dataTemplate, linkTo, parseDataUri, sessionDataTemplate, toDataUri, type DataAddress } from "./data-uri.ts";

const PAGE = 100;

export interface SessionResourcesOptions {
  readonly registry: SessionRegistry;
  readonly access: SessionAccess;
  readonly tenant: string;
}

/** Data in pages, pictures and charts by their hash, the program that draws charts, and the guide to `execute`. */
export function createSessionResources(parts: McpParts, { registry, access, tenant }: SessionResourcesOptions): ServedResources {
  const chartApp = parts.chartAppFile ?? builtChartApp;
  const guide: Resource = { uri: executeGuideUri, name: "execute", title: "How scripts of execute work", mimeType: "text/plain" };

  async function readData(address: DataAddress, uri: string, signal: AbortSignal): Promise<ReadResourceResult | null> {
    const isHere = access.isByHandle === (address.session !== null);
    const session = isHere ? access.find(address.session ?? "") : null;
    if (session === null || session.evidence.get(address.alias) === null) return null;
    const leave = registry.use(session);
    try {
      const answer = await session.data.readData({ alias: address.alias, offset: address.offset }, { signal });
      if (!answer.ok) throw new SluiceError({ code: "DATA_NOT_READ", message: answer.envelope.summary, ...hintOf(answer.envelope.hints) });
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

function templatesOf({ isByHandle }: SessionAccess): ResourceTemplateType[] {
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
  return describeExecute({ limits: limits.execute, engine: execute.engine, hasCpython: true, hasSession: true });
}

function hintOf([hint]: readonly string[]): { hint?: string } {
  return hint === undefined ? {} : { hint };
}
