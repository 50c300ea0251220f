import { isUtf8 } from "node:buffer";
import { isRecord, EXACT_CHARACTERS, parseJson, parseJsonText } from "../text/json.ts";
import type { EvidenceFormat, NamedData, ToolOutput } from "./evidence-store.ts";
import { fromValue, measureText, type OutputPart } from "./output-part.ts";

/** Splits an output into its parts, the main part first. */
export function readToolOutput({ output, as, structuredJson }: ToolOutput): [OutputPart, ...OutputPart[]] {
  if (as === "mcp" || (as === undefined && isMcpResult(output))) return readMcpResult(output as Record<string, unknown>, structuredJson);
  if (typeof output === "string") return [readText(output)];
  if (output instanceof Uint8Array) return [{ part: "bytes", format: "bytes", body: output }];
  return [fromValue(output)];
}

/** Structured content first, then JSON text, then text, then everything else. `EvidenceStore` describes the rules. */
export function readMcpResult(result: Readonly<Record<string, unknown>>, structuredJson?: string): [OutputPart, ...OutputPart[]] {
  const content = Array.isArray(result["content"])
    ? result["content"].map((part: unknown) => (isRecord(part) ? part : { value: part }))
    : [];
  const texts = content.filter(isText).map(({ text }) => text as string);
  const others = readOthers(content.filter((part) => !isText(part)));
  const structured = result["structuredContent"];
  if (structured !== undefined || structuredJson !== undefined) {
    const main = readStructured(structured, structuredJson);
    return [main, ...(isRepeated(main, texts) ? [] : joinTexts(texts, "text")), ...others];
  }
  const [first, ...rest] = [...joinTexts(texts), ...others];
  return first === undefined ? [fromValue(result)] : [first, ...rest];
}

function isText(part: McpContent): boolean {
  return part["type"] === "text" && typeof part["text"] === "string";
}

/** Prefers the text as sent, which has every digit. A large text that came with its parsed value is not parsed again. */
function readStructured(structured: unknown, json: string | undefined): OutputPart {
  if (json === undefined) return fromValue(structured);
  if (structured !== undefined && json.length > EXACT_CHARACTERS)
    return { part: "json", format: "json", body: json, value: structured, isStrictJson: true };
  const read = readText(json);
  return read.format === "json" ? read : fromValue(structured);
}

/**
 * Whether the texts only repeat the structured content, which servers do for clients that only read text. Some servers wrap a value that is not an
 * object as `{"result": …}` and send the text of the inner value, or one text per item.
 */
function isRepeated({ body, value: read }: OutputPart, texts: readonly string[]): boolean {
  if (texts.length === 0) return false;
  const isSingle = texts.length === 1;
  const joined = isSingle ? texts[0]! : `[${texts.join(",")}]`;
  if (joined === body || `{"result":${joined}}` === body) return true; // the usual case, without parsing
  const json = parseJson(joined);
  const sent: unknown[] = isSingle ? [joined, texts, json, [json]] : [texts, json];
  const value = body.length > EXACT_CHARACTERS ? read : parseJson(body); // without ExactNumbers, which equal nothing
  const inner = isRecord(value) && Object.keys(value).length === 1 ? value["result"] : undefined;
  try {
    return [value, inner].some((one) => one !== undefined && sent.some((other) => isSame(one, other)));
  } catch {
    return false; // nested too deeply to compare
  }
}

/** Whether two JSON values are equal, regardless of key order. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  if (!isRecord(one) || !isRecord(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}

/** Joins all JSON texts to one part and all other texts to another. `name` is the suffix of the JSON part's alias if it is not the main part. */
function joinTexts(texts: readonly string[], name?: "text"): OutputPart[] {
  const read = texts.map(readText);
  const isAllJson = read.every(({ format }) => format === "json");
  const isData = (part: OutputPart): boolean =>
    part.format === "json" && (isAllJson || (typeof part.value === "object" && part.value !== null));
  const data = joinJson(read.filter(isData));
  const plain = joinPlainTexts(texts.filter((_, index) => !isData(read[index]!)));
  return [...(data === null ? [] : [name === undefined ? data : { ...data, part: name }]), ...(plain === null ? [] : [plain])];
}

/** Joins several JSON texts to one array, each as sent. */
function joinJson(parts: readonly OutputPart[]): OutputPart | null {
  if (parts.length < 2) return parts[0] ?? null;
  return {
    part: "json",
    format: "json",
    body: `[${parts.map(({ body }) => (body as string).replace(/^\uFEFF/, "")).join(",")}]`,
    value: parts.map(({ value }) => value),
    isStrictJson: parts.every(({ isStrictJson }) => isStrictJson === true),
  };
}

function joinPlainTexts(texts: readonly string[]): OutputPart | null {
  if (texts.length < 2) return texts[0] === undefined ? null : plainText(texts[0]);
  return { ...fromValue(texts), part: "text" };
}

function readOthers(content: readonly McpContent[]): OutputPart[] {
  const links = content.filter(({ type }) => type === "resource_link");
  const read = content.filter(({ type }) => type !== "resource_link").map((part) => ({ part, kept: readResource(part) }));
  const unknown = read.filter(({ kept }) => kept === null).map(({ part }) => part);
  return [
    ...read.flatMap(({ kept }) => (kept === null ? [] : [kept])),
    ...(links.length > 0 ? [{ ...fromValue(links), part: "links" }] : []),
    ...(unknown.length > 0 ? [{ ...fromValue(unknown), part: "other" }] : []),
  ];
}

/** One content block of an MCP result. Servers are untrusted, so each field is checked before use. */
type McpContent = Readonly<Record<string, unknown>>;

const contentTypes: ReadonlySet<unknown> = new Set(["text", "image", "audio", "resource", "resource_link"]);

/** Whether a value looks like a result of `tools/call`, rather than data with a field named `content`. */
export function isMcpResult(output: unknown): boolean {
  if (!isRecord(output)) return false;
  const { content, structuredContent } = output;
  if (structuredContent !== undefined && (content === undefined || Array.isArray(content))) return true;
  return Array.isArray(content) && content.length > 0 && content.every((part) => isRecord(part) && contentTypes.has(part["type"]));
}

/** An image, audio or embedded resource as bytes or text; null for other content. */
function readResource(content: McpContent): OutputPart | null {
  const { type, data, mimeType, resource } = content;
  if ((type === "image" || type === "audio") && typeof data === "string") return toBytes({ part: type, base64: data, mimeType });
  if (type !== "resource" || !isRecord(resource)) return null;
  if (typeof resource["blob"] === "string") return toBytes({ part: "resource", base64: resource["blob"], mimeType: resource["mimeType"] });
  if (typeof resource["text"] !== "string") return null;
  return toTextPart(resource["text"], resource["mimeType"]);
}

function toBytes({ part, base64, mimeType }: { part: string; base64: string; mimeType: unknown }): OutputPart {
  const bytes = Buffer.from(base64, "base64");
  const format = formatOf(mimeType) ?? "bytes";
  return { part, format: isTextual(format) && !isUtf8(bytes) ? "bytes" : format, body: bytes, mimeType: textOrUndefined(mimeType) };
}

function toTextPart(text: string, mimeType: unknown): OutputPart {
  const format = formatOf(mimeType);
  return { ...(isTextual(format) ? { format, body: text } : readText(text)), part: "resource", mimeType: textOrUndefined(mimeType) };
}

function textOrUndefined(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

const formats: ReadonlyMap<string, EvidenceFormat> = new Map<string, EvidenceFormat>([
  ["text/csv", "csv"],
  ["text/tab-separated-values", "tsv"],
  ["application/jsonl", "jsonl"],
  ["application/x-ndjson", "jsonl"],
  ["application/vnd.apache.parquet", "parquet"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
]);

function formatOf(mimeType: unknown): EvidenceFormat | null {
  if (typeof mimeType !== "string") return null;
  return formats.get(mimeType.split(";")[0]!.trim().toLowerCase()) ?? null;
}

function isTextual(format: EvidenceFormat | null): format is "csv" | "tsv" | "jsonl" {
  return format === "csv" || format === "tsv" || format === "jsonl";
}

/** A text as sent, as JSON if it parses. */
export function readText(sent: string): OutputPart {
  const parsed = parseJsonText(sent);
  if (parsed === null) return plainText(sent);
  const bytes = measureText(sent);
  const body = bytes === null ? { body: escapeSurrogates(sent) } : { body: sent, bytes };
  return { part: "json", format: "json", ...body, value: parsed.value, isStrictJson: parsed.strict };
}

function plainText(sent: string): OutputPart {
  const bytes = measureText(sent);
  if (bytes !== null) return { part: "text", format: "text", body: sent, bytes };
  const unrepresentable = [...sent.matchAll(/\p{Surrogate}/gu)].length;
  return { part: "text", format: "text", body: sent, precisionLoss: { integersPast2To53: 0, nonFinite: 0, unrepresentable } };
}

/** Replaces unpaired surrogates, which UTF-8 cannot encode, with JSON escapes. In valid JSON they only occur inside strings. */
function escapeSurrogates(json: string): string {
  return json.replaceAll(/\p{Surrogate}/gu, (surrogate) => `\\u${surrogate.charCodeAt(0).toString(16)}`);
}

/** Data in a known format. */
export function readData({ format, bytes, mimeType }: Pick<NamedData, "format" | "bytes" | "mimeType">): OutputPart {
  if (format !== "json") return { part: "data", format, body: bytes, mimeType };
  const read = readText(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
  return { ...read, format: "json", body: bytes, bytes: bytes.length, mimeType };
}
