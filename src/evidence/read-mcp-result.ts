import type { PrecisionLoss } from "./contract.ts";
import { findTwin } from "./find-twin.ts";
import { isObject, type McpContent } from "./mcp-result.ts";
import { EXACT_CHARACTERS } from "./parse-json-text.ts";
import { readResource } from "./read-resource.ts";
import { plainText, readText } from "./read-text.ts";
import { fromValue, type OutputPart } from "./output-part.ts";

/** The text of `structuredContent`: as it was sent, or written by us from a value that reached us parsed, with what that value cannot vouch for. */
type StructuredText = string | { readonly json: string; readonly precisionLoss: PrecisionLoss | undefined };

/** Structured content first, then JSON text, then text, then whatever else there is; the rules are in contract.ts. */
export function readMcpResult(result: Readonly<Record<string, unknown>>, text?: StructuredText): [OutputPart, ...OutputPart[]] {
  const content = Array.isArray(result["content"])
    ? result["content"].map((part: unknown) => (isObject(part) ? part : { value: part }))
    : [];
  const texts = content.filter(isText).map(({ text }) => text as string);
  const others = readOthers(content.filter((part) => !isText(part)));
  const structured = result["structuredContent"];
  if (structured !== undefined || text !== undefined) return [...readStructured(structured, texts, text), ...others];
  const [first, ...rest] = [...readTexts(texts), ...others];
  return first === undefined ? [fromValue(result)] : [first, ...rest];
}

function isText(part: McpContent): boolean {
  return part["type"] === "text" && typeof part["text"] === "string";
}

function readStructured(structured: unknown, texts: readonly string[], text?: StructuredText): [OutputPart, ...OutputPart[]] {
  const { json, precisionLoss } = typeof text === "object" ? text : { json: text, precisionLoss: undefined };
  const fromText = json === undefined ? null : readText(json);
  const parsed = fromText?.format === "json" ? { ...fromText, precisionLoss } : fromValue(structured);
  const twin = findTwin({ json: parsed.body as string, structured: structured ?? parsed.value, texts });
  if (twin === null) return [parsed, ...readTexts(texts, "text")];
  if (typeof text === "string" && fromText?.format === "json") return [parsed]; // nothing says it better than what was sent
  const isKnown = twin === parsed.body && twin.length > EXACT_CHARACTERS; // parsed once more it would be the same value
  return isKnown ? [{ ...parsed, precisionLoss: undefined }] : [readText(twin)];
}

/** One part for all data among the texts and one for all words. `name` is what the data is called when it is not the main part. */
function readTexts(texts: readonly string[], name?: "text"): OutputPart[] {
  const read = texts.map(readText);
  const isAllJson = read.every(({ format }) => format === "json");
  const isData = (part: OutputPart): boolean =>
    part.format === "json" && (isAllJson || (typeof part.value === "object" && part.value !== null));
  const data = join(read.filter(isData));
  const words = joinWords(texts.filter((_, index) => !isData(read[index]!)));
  return [...(data === null ? [] : [name === undefined ? data : { ...data, part: name }]), ...(words === null ? [] : [words])];
}

/** Several JSON texts become one array of them, each as it was sent. */
function join(parts: readonly OutputPart[]): OutputPart | null {
  if (parts.length < 2) return parts[0] ?? null;
  return {
    part: "json",
    format: "json",
    body: `[${parts.map(({ body }) => (body as string).replace(/^\uFEFF/, "")).join(",")}]`,
    value: parts.map(({ value }) => value),
    isStrictJson: parts.every(({ isStrictJson }) => isStrictJson === true),
  };
}

function joinWords(texts: readonly string[]): OutputPart | null {
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
