/**
 * How a schema may be used. `plain`: compiled and applied on the main thread, because nothing in it can take long. `heavy`: in a thread of its own, with a
 * deadline. `unusable`: not at all.
 */
export type SchemaWeight = "plain" | "heavy" | "unusable";

const MAX_NODES = 50_000;
const MAX_PLAIN_NODES = 400;
const MAX_DEPTH = 200;

/** What takes time in proportion to the value, and no more. Patterns, references, uniqueness and the like are not among them. */
const plainKeywords: ReadonlySet<string> = new Set([
  ...["$schema", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"],
  ...["type", "enum", "const", "nullable", "properties", "required", "additionalProperties", "items", "anyOf"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
]);

/** Keywords whose content is a value, or a map or list of schemas: names inside are not keywords. */
const values: ReadonlySet<string> = new Set(["default", "examples", "enum", "const", "required", "type"]);
const maps: ReadonlySet<string> = new Set(["properties"]);

interface Node {
  readonly value: unknown;
  readonly depth: number;
  readonly as: "schema" | "map" | "value";
}

/** Looks at no more of a schema than it takes to know; cycles end at the depth. */
export function measureSchema(schema: unknown): SchemaWeight {
  const open: Node[] = [{ value: schema, depth: 0, as: "schema" }];
  let nodes = 0;
  let isPlain = true;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    nodes += 1;
    if (nodes > MAX_NODES || node.depth > MAX_DEPTH) return "unusable";
    if (typeof node.value !== "object" || node.value === null) continue;
    const entries = Object.entries(node.value);
    if (nodes + open.length + entries.length > MAX_NODES) return "unusable";
    for (const [key, value] of entries) {
      if (node.as === "schema" && !Array.isArray(node.value) && !plainKeywords.has(key)) isPlain = false;
      open.push({ value, depth: node.depth + 1, as: kindBelow(node, key) });
    }
  }
  return isPlain && nodes <= MAX_PLAIN_NODES ? "plain" : "heavy";
}

function kindBelow({ value, as }: Node, key: string): Node["as"] {
  if (as === "value") return "value";
  if (as === "map" || Array.isArray(value)) return "schema";
  if (values.has(key)) return "value";
  return maps.has(key) ? "map" : "schema";
}

/** Whether a value has more parts than `limit`; it is not looked at further. */
export function hasMoreParts(value: unknown, limit: number): boolean {
  const open: unknown[] = [value];
  let parts = 0;
  for (let next = open.pop(); next !== undefined || open.length > 0; next = open.pop()) {
    parts += 1;
    if (parts > limit) return true;
    if (typeof next !== "object" || next === null) continue;
    const below = Array.isArray(next) ? next : Object.values(next);
    if (parts + open.length + below.length > limit) return true;
    open.push(...below);
  }
  return false;
}
