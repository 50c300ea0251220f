import type { CallToolResult, ContentBlock, ResourceLink } from "@modelcontextprotocol/server";
import { serializeEnvelope, type Envelope } from "../../../errors/envelope.ts";
import type { ForeignEnvelope } from "../../../errors/foreign-envelope.ts";
import type { ChartArtifact } from "../../../protocol/artifact.ts";
import { parseExactJson } from "./parse-exact-json.ts";
import { toChartTable } from "./to-chart-table.ts";
import { toImageContent, type PublishedImage } from "./to-image-content.ts";

/** What a tool of ours has to say, before it is content of the protocol. */
export interface ToolReply {
  /** JSON text of an object: what a model reads. Its numbers reach the client as they are written here. */
  readonly json: string;
  readonly isError: boolean;
  readonly images?: readonly PublishedImage[];
  readonly charts?: readonly ChartArtifact[];
  readonly links?: readonly ResourceLink[];
}

/** The text and the structured form say the same; charts are whole in the structured form, and a table in the text. */
export function toCallResult({ json, isError, images = [], charts = [], links = [] }: ToolReply): CallToolResult {
  const structured = parseExactJson(json) as Record<string, unknown>;
  const content: ContentBlock[] = [
    { type: "text", text: json },
    ...charts.map((chart): ContentBlock => ({ type: "text", text: toChartTable(chart) })),
    ...toImageContent(images),
    ...links,
  ];
  return {
    content,
    structuredContent: charts.length === 0 ? structured : { ...structured, charts },
    ...(isError ? { isError: true } : {}),
  };
}

export function toErrorReply(envelope: Envelope | ForeignEnvelope): ToolReply {
  return { json: `{"status":"refused","error":${serializeEnvelope(envelope)}}`, isError: true };
}

export function toErrorResult(envelope: Envelope | ForeignEnvelope): CallToolResult {
  return toCallResult(toErrorReply(envelope));
}
