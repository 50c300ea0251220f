import { isRecord } from "../text/json.ts";
import type { JsonSchema } from "./backend-tool.ts";

/** Follows up to 16 references within the document. Returns the empty schema for a reference that leads nowhere. */
export function followReferences(schema: unknown, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let step = 0; step < 16; step += 1) {
    if (!isRecord(current)) return {};
    const { $ref: reference } = current;
    if (typeof reference !== "string") return current;
    current = lookUp(reference, root);
  }
  return {};
}

function lookUp(reference: string, root: JsonSchema): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return null;
  let found: unknown = root;
  for (const step of decodePointer(reference.slice(2)).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return null;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}

function decodePointer(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The properties of a schema and of its `allOf`. */
export function propertiesOf(schema: JsonSchema, root: JsonSchema): Readonly<Record<string, unknown>> {
  const own = isRecord(schema["properties"]) ? schema["properties"] : {};
  const others = partsOf(schema, root).map(({ properties }) => properties);
  return others.length === 0 ? own : (Object.assign({}, ...others.filter(isRecord), own) as Record<string, unknown>);
}

/** The names of the required properties of a schema and of its `allOf`. */
export function requiredOf(schema: JsonSchema, root: JsonSchema): ReadonlySet<string> {
  const names = [schema, ...partsOf(schema, root)].flatMap(({ required }) => (Array.isArray(required) ? (required as unknown[]) : []));
  return new Set(names.filter((name) => typeof name === "string"));
}

/** The schemas in `allOf`; at most 20. */
function partsOf({ allOf }: JsonSchema, root: JsonSchema): JsonSchema[] {
  return Array.isArray(allOf) ? allOf.slice(0, 20).map((part: unknown) => followReferences(part, root)) : [];
}

/** The alternatives of a schema: `anyOf`, `oneOf`, or the schema itself. */
export function alternativesOf(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  const branches = [schema["anyOf"], schema["oneOf"]].find(Array.isArray) as unknown[] | undefined;
  return branches === undefined ? [schema] : branches.slice(0, 20).map((branch) => followReferences(branch, root));
}

/** `type` as a list; without a `type`, guessed from the other keywords. */
export function typesIn(schema: JsonSchema): readonly string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((name) => typeof name === "string");
  if (isRecord(schema["properties"])) return ["object"];
  return schema["items"] === undefined ? [] : ["array"];
}
