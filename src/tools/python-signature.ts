import { isRecord } from "../text/json.ts";
import { pythonKeywords } from "../protocol/python-names.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { BackendTool, JsonSchema } from "./backend-tool.ts";
import { alternativesOf, followReferences, propertiesOf, requiredOf, typesIn } from "./read-schema.ts";

export interface PythonSignature {
  /** `get_price(symbol: str, days: int = 30) -> list[dict]`. Its parameters are the keys of `call_tool`'s second argument. */
  readonly signature: string;
  /** The TypedDicts that the signature names. */
  readonly shapes: readonly string[];
}

const MAX_SHAPES = 20;
const MAX_TYPES = 2_000;

/** Required parameters first, as Python demands; names that Python cannot have are written as strings. */
export function toPythonSignature(
  name: string,
  { inputSchema, outputSchema }: Pick<BackendTool, "inputSchema" | "outputSchema">,
): PythonSignature {
  const written = createShapes();
  const root = followReferences(inputSchema, inputSchema);
  const required = requiredOf(root, inputSchema);
  const properties = Object.entries(propertiesOf(root, inputSchema));
  const isRequired = ([key]: readonly [string, unknown]): boolean => required.has(key);
  const parameters = [...properties.filter(isRequired), ...properties.filter((property) => !isRequired(property))].map(
    ([key, property]) => {
      const type = toPythonType({ schema: property, root: inputSchema, hint: key, shapes: written.of(inputSchema) });
      return `${toPythonKey(key)}: ${required.has(key) ? type : withDefault(type, property, inputSchema)}`;
    },
  );
  const output =
    outputSchema === undefined
      ? "Any"
      : toPythonType({ schema: outputSchema, root: outputSchema, hint: "result", shapes: written.of(outputSchema) });
  return { signature: `${name}(${parameters.join(", ")}) -> ${output}`, shapes: written.lines() };
}

function withDefault(type: string, property: unknown, root: JsonSchema): string {
  const fallback = isRecord(property) && "default" in property ? property["default"] : followReferences(property, root)["default"];
  if (fallback !== undefined) return `${type} = ${toPythonValue(fallback)}`;
  return type === "Any" || type.endsWith("None") ? `${type} = None` : `${type} = ...`;
}

interface Shapes {
  of(root: JsonSchema): ShapeNames;
  lines(): string[];
}

function createShapes(): Shapes {
  const names = new Map<JsonSchema, string>();
  const texts = new Map<string, string>();
  let left = MAX_TYPES;
  const spend = (): boolean => {
    left -= 1;
    return left >= 0;
  };

  function nameFor(schema: JsonSchema, hint: string, root: JsonSchema): string | null {
    const known = names.get(schema);
    if (known !== undefined) return known;
    if (names.size >= MAX_SHAPES) return null;
    const name = firstFree(typeof schema["title"] === "string" && /^[A-Z]\w*$/.test(schema["title"]) ? schema["title"] : toClassName(hint));
    names.set(schema, name); // before its fields are read: a shape may contain itself
    texts.set(name, "");
    const fields = shapeLines(schema, root, { nameFor: (inner, innerHint) => nameFor(inner, innerHint, root), spend });
    texts.set(name, `class ${name}(TypedDict):\n${fields.map((line) => `    ${line}`).join("\n")}`);
    return name;
  }

  function firstFree(wanted: string): string {
    const taken = new Set(names.values());
    if (!taken.has(wanted)) return wanted;
    for (let number = 2; ; number += 1) if (!taken.has(`${wanted}${number}`)) return `${wanted}${number}`;
  }

  return { of: (root) => ({ nameFor: (schema, hint) => nameFor(schema, hint, root), spend }), lines: () => [...texts.values()] };
}

function toClassName(hint: string): string {
  const words = hint.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return /^[A-Z]/.test(name) ? name.slice(0, 40) : "Shape";
}

/** Names shapes while types are written, so that each is written once and one that contains itself ends. */
interface ShapeNames {
  /** The name of the TypedDict for this schema; null when there are too many already. */
  nameFor(schema: JsonSchema, hint: string): string | null;
  /** False when enough has been read: references can make a small schema stand for a huge one. */
  spend(): boolean;
}

const MAX_LITERALS = 12;
const MAX_ALTERNATIVES = 8;
const MAX_DEPTH = 8;

interface TypeRequest {
  readonly schema: unknown;
  readonly root: JsonSchema;
  /** What the value is called, for the name of its shape. */
  readonly hint: string;
  readonly shapes: ShapeNames;
  readonly depth?: number;
}

/** The Python type of what a schema describes: `list[str]`, `Literal["a", "b"] | None`, a TypedDict's name. What cannot be said is `Any`. */
function toPythonType(request: TypeRequest): string {
  const parts = new Set(partsOf(request));
  if (parts.size === 0 || parts.has("Any")) return "Any";
  const isNullable = parts.delete("None");
  return [...parts, ...(isNullable ? ["None"] : [])].join(" | ");
}

/** The alternatives of the type. */
function partsOf({ depth = 0, ...request }: TypeRequest): string[] {
  const { root } = request;
  const schema = followReferences(request.schema, root);
  if (depth > MAX_DEPTH || !request.shapes.spend()) return ["Any"];
  if ("const" in schema) return literal([schema["const"]]);
  if (Array.isArray(schema["enum"])) return literal(schema["enum"] as unknown[]);
  const branches = branchesOf(schema, root);
  if (branches.length > MAX_ALTERNATIVES) return ["Any"];
  if (branches.length > 0) return branches.flatMap((branch) => partsOf({ ...request, schema: branch, depth: depth + 1 }));
  const types = typesIn(schema).length > 0 ? typesIn(schema) : Object.keys(propertiesOf(schema, root)).length > 0 ? ["object"] : [];
  return [...types.map((type) => oneType(type, { ...request, schema, depth })), ...(schema["nullable"] === true ? ["None"] : [])];
}

/** Empty for a schema that is no choice. A lone `allOf` is how older generators hang a description on a reference. */
function branchesOf(schema: JsonSchema, root: JsonSchema): readonly unknown[] {
  const branches = alternativesOf(schema, root);
  if (branches.length !== 1 || branches[0] !== schema) return branches;
  const { allOf } = schema;
  return Array.isArray(allOf) && allOf.length === 1 && typesIn(schema).length === 0 ? (allOf as unknown[]) : [];
}

function oneType(type: string, request: TypeRequest & { readonly schema: JsonSchema; readonly depth: number }): string {
  const { schema, root, hint, shapes, depth } = request;
  switch (type) {
    case "string":
      return "str";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "boolean":
      return "bool";
    case "null":
      return "None";
    case "array": {
      const items = isRecord(schema["items"])
        ? toPythonType({ schema: schema["items"], root, hint: singular(hint), shapes, depth: depth + 1 })
        : "Any";
      return items === "Any" ? "list" : `list[${items}]`;
    }
    case "object": {
      if (Object.keys(propertiesOf(schema, root)).length > 0) return shapes.nameFor(schema, hint) ?? "dict";
      const { additionalProperties } = schema;
      const values = isRecord(additionalProperties)
        ? toPythonType({ schema: additionalProperties, root, hint, shapes, depth: depth + 1 })
        : "Any";
      return values === "Any" ? "dict" : `dict[str, ${values}]`;
    }
    default:
      return "Any";
  }
}

/** The fields of a shape as lines of a TypedDict. */
function shapeLines(schema: JsonSchema, root: JsonSchema, shapes: ShapeNames): string[] {
  const required = requiredOf(schema, root);
  return Object.entries(propertiesOf(schema, root)).map(([name, property]) => {
    const type = toPythonType({ schema: property, root, hint: name, shapes });
    return `${toPythonKey(name)}: ${required.has(name) ? type : `NotRequired[${type}]`}`;
  });
}

/** A parameter's or a field's name; as a string where Python could not have it. */
function toPythonKey(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) && !pythonKeywords.has(name) ? name : JSON.stringify(name);
}

/** A JSON value as Python writes it, short. */
function toPythonValue(value: unknown): string {
  const text = toPython(value, 0);
  return text.length > 80 ? "..." : text;
}

function toPython(value: unknown, depth: number): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(ellipsize(value, 60));
  if (depth > 3 || typeof value !== "object") return "...";
  if (Array.isArray(value))
    return `[${value
      .slice(0, 20)
      .map((one) => toPython(one, depth + 1))
      .join(", ")}]`;
  const entries = Object.entries(value).slice(0, 20);
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}: ${toPython(one, depth + 1)}`).join(", ")}}`;
}

function literal(values: readonly unknown[]): string[] {
  const plain = values.filter((value) => value !== null);
  const shown = plain.slice(0, MAX_LITERALS).map(toPythonValue);
  const isAll = plain.length <= MAX_LITERALS && shown.every((text) => text !== "...");
  const types = plain.length === 0 ? [] : isAll ? [`Literal[${shown.join(", ")}]`] : typesOfValues(plain);
  return plain.length < values.length ? [...types, "None"] : types;
}

/** Of a long list only what its values have in common is said; the schema has them all. */
function typesOfValues(values: readonly unknown[]): string[] {
  const names: Readonly<Record<string, string>> = { string: "str", number: "float", boolean: "bool" };
  return [...new Set(values.map((value) => names[typeof value] ?? "Any"))];
}

function singular(name: string): string {
  return name.length > 3 && name.endsWith("s") && !name.endsWith("ss") ? name.slice(0, -1) : name;
}
