import { isRecord } from "../text/json.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { BackendTool, JsonSchema, ToolAnnotations } from "./backend-tool.ts";
import { nearNames, type CatalogTool, type ToolCatalog } from "./create-tool-catalog.ts";
import { toPythonSignature } from "./python-signature.ts";
import { followReferences, propertiesOf } from "./read-schema.ts";
import type { ToolPolicy } from "./tool-policy.ts";

/** `brief`: what it does. `detailed`: how it is called, in Python's words. `full`: its JSON Schemas. */
export type ToolDetail = "brief" | "detailed" | "full";

export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly signature?: string;
  /** TypedDicts that the signature names. */
  readonly types?: readonly string[];
  /** What the schema says of its parameters in words and limits. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly inputSchema?: JsonSchema | string;
  readonly outputSchema?: JsonSchema | string;
  readonly annotations?: ToolAnnotations;
  readonly tags?: readonly string[];
  /** Why a call would be refused, or that somebody will be asked. */
  readonly policy?: string;
}

export interface SchemaAnswer {
  readonly tools: readonly ToolDescription[];
  /** Names without a tool, each with what may have been meant. */
  readonly notFound?: readonly { readonly name: string; readonly didYouMean: readonly string[] }[];
  /** Servers whose tools are missing, and why. */
  readonly gaps?: readonly string[];
}

const MAX_TOOLS = 50;
const MAX_PARAMETERS = 100;
const MAX_SENTENCE_CHARACTERS = 200;
const MAX_DESCRIPTION_CHARACTERS = 4_000;
const MAX_SCHEMA_CHARACTERS = 65_536;

/** What `get_schema` answers. A name that is wrong does not spoil the others. */
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
  const { tools: known, gaps } = await catalog.list(signal);
  const found = new Map<string, ToolDescription>();
  const notFound: { name: string; didYouMean: string[] }[] = [];
  for (const name of new Set([names].flat().slice(0, MAX_TOOLS))) {
    const resolved = await catalog.resolve(name, signal);
    if (resolved.ok) found.set(resolved.tool.fullName, describeTool(resolved.tool, { detail, policy }));
    else notFound.push({ name, didYouMean: namesakesOrNear(name, known) });
  }
  return {
    tools: [...found.values()],
    ...(notFound.length > 0 ? { notFound } : {}),
    ...(notFound.length > 0 && gaps.length > 0 ? { gaps: gaps.map(({ server, reason }) => `${server}: ${reason}`) } : {}),
  };
}

/** One tool as a model reads it. Texts of a server are cut, never trusted. */
export function describeTool(
  entry: CatalogTool,
  { detail = "detailed", policy }: { readonly detail?: ToolDetail | undefined; readonly policy?: ToolPolicy | undefined } = {},
): ToolDescription {
  const { tool, name } = entry;
  const note = policyNote(entry, policy);
  const about = { name, description: detail === "brief" ? firstSentence(tool) : ellipsize(textOf(tool), MAX_DESCRIPTION_CHARACTERS) };
  const rest = { ...(Object.keys(tool.annotations).length > 0 ? { annotations: tool.annotations } : {}), tags: tagsOf(tool) };
  switch (detail) {
    case "brief":
      return { ...about, ...note };
    case "detailed": {
      const { signature, shapes } = toPythonSignature(name, tool);
      const parameters = describeParameters(tool.inputSchema);
      return {
        name,
        signature: ellipsize(signature, MAX_DESCRIPTION_CHARACTERS),
        description: about.description,
        ...(shapes.length > 0 ? { types: shapes.map((shape) => ellipsize(shape, MAX_DESCRIPTION_CHARACTERS)) } : {}),
        ...(Object.keys(parameters).length > 0 ? { parameters } : {}),
        ...rest,
        ...note,
      };
    }
    case "full":
      return {
        ...about,
        inputSchema: whole(tool.inputSchema),
        ...(tool.outputSchema === undefined ? {} : { outputSchema: whole(tool.outputSchema) }),
        ...rest,
        ...note,
      };
  }
}

function namesakesOrNear(name: string, known: readonly CatalogTool[]): string[] {
  const namesakes = known.filter(({ tool }) => tool.name === name).map(({ fullName }) => fullName);
  return namesakes.length > 0 ? namesakes.slice(0, 5) : nearNames(name, known);
}

function policyNote(entry: CatalogTool, policy?: ToolPolicy): { policy?: string } {
  const judged = policy?.judge(entry);
  if (judged === undefined || judged.verdict === "allowed") return {};
  return { policy: judged.verdict === "ask" ? "Somebody is asked before each call." : judged.toolError.summary };
}

/** Limits and words of each parameter that has any; its type is in the signature. */
function describeParameters(schema: JsonSchema): Record<string, string> {
  const properties = Object.entries(propertiesOf(followReferences(schema, schema), schema)).slice(0, MAX_PARAMETERS);
  const described = properties.map(([name, property]) => {
    const followed = { ...followReferences(property, schema), ...(isRecord(property) ? property : {}) };
    const words = typeof followed["description"] === "string" ? [ellipsize(followed["description"].trim(), 500)] : [];
    const limits = limitsOf(followed);
    return [name, [...words, ...(limits === "" ? [] : [`(${limits})`])].join(" ")] as const;
  });
  return Object.fromEntries(described.filter(([, text]) => text !== ""));
}

const limitNames: Readonly<Record<string, string>> = {
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

function limitsOf(schema: JsonSchema): string {
  const limits = Object.entries(limitNames).flatMap(([keyword, words]) => {
    const value = schema[keyword];
    return typeof value === "number" || typeof value === "string" ? [`${words} ${ellipsize(String(value), 100)}`] : [];
  });
  const [example] = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [];
  return [...limits, ...(example === undefined ? [] : [`e.g. ${ellipsize(JSON.stringify(example), 100)}`])].join(", ");
}

function whole(schema: JsonSchema): JsonSchema | string {
  try {
    const { length } = JSON.stringify(schema);
    return length <= MAX_SCHEMA_CHARACTERS ? schema : `Left out: the schema has ${length} characters. Ask for "detailed".`;
  } catch {
    return "Left out: the schema has no JSON form.";
  }
}

function textOf({ title, description }: BackendTool): string {
  return description.trim() || title?.trim() || "";
}

/** The first sentence or line, whichever is shorter. */
function firstSentence(tool: BackendTool): string {
  const text = textOf(tool).slice(0, 2_000);
  const line = text.split("\n", 1)[0]!.trim();
  return ellipsize(/^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line, MAX_SENTENCE_CHARACTERS);
}

export interface TagsAnswer {
  /** The most used first. */
  readonly tags: readonly { readonly tag: string; readonly tools: number }[];
  readonly total: number;
}

const MAX_TAGS = 200;
const MAX_TAG_CHARACTERS = 80;

/** What `tags` answers: every tag with how many tools have it. The name of a server is a tag of its tools. */
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

/** A tool's own tags and its server's name, each once. */
export function tagsOf({ tags, server }: BackendTool): string[] {
  return [...new Set([server, ...tags].map((tag) => tag.trim().slice(0, MAX_TAG_CHARACTERS)).filter((tag) => tag !== ""))];
}
