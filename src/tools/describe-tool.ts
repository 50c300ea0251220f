import { isRecord } from "../text/json.ts";
import { approvalNote, schemaNotJsonNote, schemaTooLargeNote } from "../prompts/code-mode-tools.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { BackendTool, JsonSchema, ToolAnnotations } from "./backend-tool.ts";
import { similarNames, type CatalogTool, type ToolCatalog, type ToolList } from "./create-tool-catalog.ts";
import { toPythonSignature } from "./to-python-signature.ts";
import { followReferences, propertiesOf } from "./read-schema.ts";
import type { ToolPolicy } from "./tool-policy.ts";

/** `brief`: one sentence. `detailed`: a Python signature. `full`: the JSON Schemas. */
export const toolDetails = ["brief", "detailed", "full"] as const;
export type ToolDetail = (typeof toolDetails)[number];

export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly signature?: string;
  /** TypedDicts that the signature names. */
  readonly types?: readonly string[];
  /** Descriptions and limits of the parameters, from the schema. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly inputSchema?: JsonSchema | string;
  readonly outputSchema?: JsonSchema | string;
  readonly annotations?: ToolAnnotations;
  readonly tags?: readonly string[];
  /** Why a call would be refused, or that it needs approval. */
  readonly policy?: string;
}

export interface SchemaAnswer {
  readonly tools: readonly ToolDescription[];
  /** Unknown names, each with similar ones. */
  readonly notFound?: readonly { readonly name: string; readonly didYouMean: readonly string[] }[];
  /** Servers whose tools are missing, and why. */
  readonly gaps?: readonly string[];
}

const MAX_TOOLS = 50;
const MAX_PARAMETERS = 100;
const MAX_SENTENCE_CHARACTERS = 200;
const MAX_DESCRIPTION_CHARACTERS = 4_000;
const MAX_SCHEMA_CHARACTERS = 65_536;

/** The answer of `get_schema`. Unknown names are listed beside the others. */
export async function describeTools({
  catalog,
  tools: names,
  detail = "detailed",
  policy,
  signal,
}: {
  readonly catalog: ToolCatalog;
  readonly tools: string | readonly string[];
  readonly detail?: ToolDetail | undefined;
  readonly policy?: ToolPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<SchemaAnswer> {
  const list = await catalog.list(signal);
  const found = new Map<string, ToolDescription>();
  const notFound: { name: string; didYouMean: string[] }[] = [];
  for (const name of new Set([names].flat().slice(0, MAX_TOOLS))) {
    const resolved = await catalog.resolve(name, signal);
    if (resolved.ok) found.set(resolved.tool.fullName, describeTool(resolved.tool, { detail, policy }));
    else notFound.push({ name, didYouMean: suggestNames(name, list.tools) });
  }
  if (notFound.length === 0) return { tools: [...found.values()] };
  return { tools: [...found.values()], notFound, gaps: nonEmpty(gapTexts(list)) };
}

/** Describes one tool to a model. Texts of a server are cut to a maximum length. */
export function describeTool(
  entry: CatalogTool,
  { detail = "detailed", policy }: { readonly detail?: ToolDetail | undefined; readonly policy?: ToolPolicy | undefined } = {},
): ToolDescription {
  const { tool, name } = entry;
  const { inputSchema, outputSchema } = tool;
  const policyNote = describePolicy(entry, policy);
  if (detail === "brief") return { name, description: firstSentence(tool), policy: policyNote };
  const clip = (text: string): string => ellipsize(text, MAX_DESCRIPTION_CHARACTERS);
  const description = clip(descriptionOf(tool));
  const rest = { annotations: nonEmpty(tool.annotations), tags: tagsOf(tool), policy: policyNote };
  if (detail === "full")
    return { name, description, inputSchema: withinLimit(inputSchema), outputSchema: outputSchema && withinLimit(outputSchema), ...rest };
  const { signature, shapes } = toPythonSignature(name, tool);
  const parameters = nonEmpty(describeParameters(inputSchema));
  return { name, signature: clip(signature), description, types: nonEmpty(shapes.map(clip)), parameters, ...rest };
}

/** Undefined for an empty list or object, which JSON then omits. */
export function nonEmpty<Value extends object>(value: Value): Value | undefined {
  return Object.keys(value).length > 0 ? value : undefined;
}

/** Which servers' tools are missing, and why. */
export function gapTexts({ gaps }: ToolList): string[] {
  return gaps.map(({ server, reason }) => `${server}: ${reason}`);
}

function suggestNames(name: string, known: readonly CatalogTool[]): string[] {
  const namesakes = known.filter(({ tool }) => tool.name === name).map(({ fullName }) => fullName);
  return namesakes.length > 0 ? namesakes.slice(0, 5) : similarNames(name, known);
}

function describePolicy(entry: CatalogTool, policy?: ToolPolicy): string | undefined {
  const judgement = policy?.judge(entry);
  if (judgement?.verdict === "refused") return judgement.why;
  return judgement?.verdict === "ask" ? approvalNote : undefined;
}

/** Description and limits of each parameter that has any. Types are in the signature. */
function describeParameters(schema: JsonSchema): Record<string, string> {
  const properties = Object.entries(propertiesOf(followReferences(schema, schema), schema)).slice(0, MAX_PARAMETERS);
  const described = properties.map(([name, property]) => {
    const followed = { ...followReferences(property, schema), ...(isRecord(property) ? property : {}) };
    const description = typeof followed["description"] === "string" ? [ellipsize(followed["description"].trim(), 500)] : [];
    const limits = describeLimits(followed);
    return [name, [...description, ...(limits === "" ? [] : [`(${limits})`])].join(" ")] as const;
  });
  return Object.fromEntries(described.filter(([, text]) => text !== ""));
}

const limitLabels: Readonly<Record<string, string>> = {
  minimum: ">=",
  maximum: "<=",
  exclusiveMinimum: ">",
  exclusiveMaximum: "<",
  multipleOf: "a multiple of",
  minLength: "characters >=",
  maxLength: "characters <=",
  minItems: "items >=",
  maxItems: "items <=",
  pattern: "pattern",
  format: "format",
};

function describeLimits(schema: JsonSchema): string {
  const limits = Object.entries(limitLabels).flatMap(([keyword, label]) => {
    const value = schema[keyword];
    return typeof value === "number" || typeof value === "string" ? [`${label} ${ellipsize(String(value), 100)}`] : [];
  });
  const [example] = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [];
  return [...limits, ...(example === undefined ? [] : [`e.g. ${ellipsize(JSON.stringify(example), 100)}`])].join(", ");
}

function withinLimit(schema: JsonSchema): JsonSchema | string {
  try {
    const { length } = JSON.stringify(schema);
    return length <= MAX_SCHEMA_CHARACTERS ? schema : schemaTooLargeNote(length);
  } catch {
    return schemaNotJsonNote;
  }
}

function descriptionOf({ title, description }: BackendTool): string {
  return description.trim() || title?.trim() || "";
}

/** The first sentence or line, whichever is shorter. */
function firstSentence(tool: BackendTool): string {
  const text = descriptionOf(tool).slice(0, 2_000);
  const line = text.split("\n", 1)[0]!.trim();
  return ellipsize(/^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line, MAX_SENTENCE_CHARACTERS);
}

export interface TagsAnswer {
  /** The most frequent first. */
  readonly tags: readonly { readonly tag: string; readonly tools: number }[];
  readonly total: number;
}

const MAX_TAGS = 200;
const MAX_TAG_CHARACTERS = 80;

/** The answer of `tags`: every tag with the number of its tools. The name of a server is a tag of its tools. */
export async function listTags({
  catalog,
  signal,
}: {
  readonly catalog: ToolCatalog;
  readonly signal?: AbortSignal | undefined;
}): Promise<TagsAnswer> {
  const { tools } = await catalog.list(signal);
  const counts = new Map<string, number>();
  for (const { tool } of tools) for (const tag of tagsOf(tool)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const sorted = [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
  return { tags: sorted.slice(0, MAX_TAGS).map(([tag, count]) => ({ tag, tools: count })), total: tools.length };
}

/** The name of the server and the tool's own tags, without duplicates. */
export function tagsOf({ tags, server }: BackendTool): string[] {
  return [...new Set([server, ...tags].map((tag) => tag.trim().slice(0, MAX_TAG_CHARACTERS)).filter((tag) => tag !== ""))];
}
