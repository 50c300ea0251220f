import { isUtf8 } from "node:buffer";
import type { EvidenceFormat } from "./contract.ts";
import { isObject, type McpContent } from "./mcp-result.ts";
import { readText } from "./read-text.ts";
import type { OutputPart } from "./output-part.ts";

/** An image, a sound or an embedded resource as bytes or text; null for what is none of these. */
export function readResource(content: McpContent): OutputPart | null {
  const { type, data, mimeType, resource } = content;
  if ((type === "image" || type === "audio") && typeof data === "string") return toBytes({ part: type, base64: data, mimeType });
  if (type !== "resource" || !isObject(resource)) return null;
  if (typeof resource["blob"] === "string") return toBytes({ part: "resource", base64: resource["blob"], mimeType: resource["mimeType"] });
  if (typeof resource["text"] !== "string") return null;
  return toTextPart(resource["text"], resource["mimeType"]);
}

function toBytes({ part, base64, mimeType }: { part: string; base64: string; mimeType: unknown }): OutputPart {
  const bytes = Buffer.from(base64, "base64");
  const format = formatOf(mimeType) ?? "bytes";
  return { part, format: isTextual(format) && !isUtf8(bytes) ? "bytes" : format, body: bytes, ...asMimeType(mimeType) };
}

function toTextPart(text: string, mimeType: unknown): OutputPart {
  const format = formatOf(mimeType);
  const part = { ...readText(text), part: "resource", ...asMimeType(mimeType) };
  return format === "csv" || format === "tsv" || format === "jsonl"
    ? { part: "resource", format, body: text, ...asMimeType(mimeType) }
    : part;
}

function asMimeType(mimeType: unknown): { mimeType?: string } {
  return typeof mimeType === "string" ? { mimeType } : {};
}

const formats: ReadonlyMap<string, EvidenceFormat> = new Map<string, EvidenceFormat>(
  Object.entries({
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
  } as const),
);

function formatOf(mimeType: unknown): EvidenceFormat | null {
  if (typeof mimeType !== "string") return null;
  return formats.get(mimeType.split(";")[0]!.trim().toLowerCase()) ?? null;
}

function isTextual(format: EvidenceFormat): boolean {
  return format === "csv" || format === "tsv" || format === "jsonl";
}
