import type { ContentBlock } from "@modelcontextprotocol/server";
import type { ArtifactStore } from "../../../artifacts/artifact-store.ts";
import { describeLinkedArtifact, omittedFromTable } from "../../../prompts/mcp-server.ts";
import type { ArtifactEnvelope, ChartArtifact, ImageArtifact } from "../../../protocol/artifact.ts";
import { describeChart } from "../../../protocol/artifact-reference.ts";
import type { ChartCell } from "../../../protocol/chart-spec.ts";
import { ellipsize } from "../../../text/clip-text.ts";

/**
 * Bytes of pictures, and of charts with their rows, in one result. Clients reject results of several megabytes, and the model would then see nothing; many
 * also give structured content to the model.
 */
const MAX_INLINE_BYTES = 256 * 1024;

export interface PublishedArtifact {
  readonly artifact: ArtifactEnvelope;
  /** The picture of an image; null for a chart, and when the store no longer has it. */
  readonly picture: Uint8Array | null;
}

export async function readPictures(artifacts: readonly ArtifactEnvelope[], store: ArtifactStore): Promise<PublishedArtifact[]> {
  return await Promise.all(
    artifacts.map(async (artifact) => {
      const isInline = artifact.kind === "image" && artifact.bytes <= MAX_INLINE_BYTES;
      return { artifact, picture: isInline ? await store.get(artifact.contentHash, "png") : null };
    }),
  );
}

/**
 * Artifacts as content of a result, and the charts for its structured content. What fits the limit is included, in order: pictures with their alt text,
 * charts complete. The others become links that name their size and the limit. Every chart is also a table of its first rows.
 */
export function toArtifactContent(published: readonly PublishedArtifact[]): { content: ContentBlock[]; charts: ChartArtifact[] } {
  const content: ContentBlock[] = [];
  const charts: ChartArtifact[] = [];
  let remaining = MAX_INLINE_BYTES;
  for (const { artifact, picture } of published) {
    const isIncluded = artifact.bytes <= remaining && (artifact.kind === "chart" || picture !== null);
    if (isIncluded) remaining -= artifact.bytes;
    if (artifact.kind === "chart") {
      content.push({ type: "text", text: toChartTable(artifact) });
      if (isIncluded) charts.push(artifact);
      else content.push(toLink(artifact, { alt: describeChart(artifact.spec), type: "json" }));
    } else if (isIncluded) content.push(toInlineImage(artifact, picture!));
    else content.push(toLink(artifact, { alt: artifact.alt, type: "png" }));
  }
  return { content, charts };
}

function toInlineImage(artifact: ImageArtifact, picture: Uint8Array): ContentBlock {
  const data = Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength).toString("base64");
  const { alt, url, title, figureData } = artifact;
  return { type: "image", data, mimeType: "image/png", _meta: { alt, url, title, figureData } };
}

function toLink(artifact: ArtifactEnvelope, { alt, type }: { alt: string; type: "png" | "json" }): ContentBlock {
  const { url, title, contentHash, bytes } = artifact;
  const figureData = artifact.kind === "image" ? artifact.figureData : undefined;
  return {
    type: "resource_link",
    uri: url,
    name: `${contentHash}.${type}`,
    title: title ?? alt,
    description: describeLinkedArtifact({ alt, bytes, maxBytes: MAX_INLINE_BYTES }),
    mimeType: type === "png" ? "image/png" : "application/json",
    size: bytes,
    ...(figureData && { _meta: { figureData } }),
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
