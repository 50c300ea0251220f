import { isRecord } from "../text/json.ts";
import { pythonKeywords } from "../protocol/python-names.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { BackendTool, JsonSchema } from "./backend-tool.ts";
import { alternativesOf, followReferences, propertiesOf, requiredOf, typesIn } from "./read-schema.ts";

export interface PythonSignature {
  /** `get_price(symbol: str, days: int = 30) -> list[dict]`. The parameters are the keys of the second argument of `call_tool`. */
  readonly signature: string;
  /** The TypedDicts that the signature names. */
  readonly shapes: readonly string[];
}

const MAX_SHAPES = 20;
const MAX_TYPES = 2_000;

/** The Python signature of a tool. Required parameters come first; names that are invalid in Python are written as strings. */
export function toPythonSignature(
  name: string,
  { inputSchema, outputSchema }: Pick<BackendTool, "inputSchema" | "outputSchema">,
): PythonSignature {
  const shapes: Shapes = { names: new Map(), definitions: new Map(), remainingTypes: MAX_TYPES };
  const root = followReferences(inputSchema, inputSchema);
  const required = requiredOf(root, inputSchema);
  const properties = Object.entries(propertiesOf(root, inputSchema));
  const isRequired = ([key]: readonly [string, unknown]): boolean => required.has(key);
  const parameters = [...properties.filter(isRequired), ...properties.filter((property) => !isRequired(property))].map(
    ([key, property]) => {
      const type = toPythonType({ schema: property, root: inputSchema, hint: key, shapes });
      return `${toPythonKey(key)}: ${required.has(key) ? type : withDefault(type, property, inputSchema)}`;
    },
  );
  const output = outputSchema === undefined ? "Any" : toPythonType({ schema: outputSchema, root: outputSchema, hint: "result", shapes });
  return { signature: `${name}(${parameters.join(", ")}) -> ${output}`, shapes: [...shapes.definitions.values()] };
}

function withDefault(type: string, property: unknown, root: JsonSchema): string {
  const fallback = isRecord(property) && "default" in property ? property["default"] : followReferences(property, root)["default"];
  if (fallback !== undefined) return `${type} = ${toPythonValue(fallback)}`;
  return type === "Any" || type.endsWith("None") ? `${type} = None` : `${type} = ...`;
}

/** The TypedDicts of one signature. Each schema is defined once, so that recursive schemas terminate. */
interface Shapes {
  readonly names: Map<JsonSchema, string>;
  /** By name of the TypedDict. */
  readonly definitions: Map<string, string>;
  /** How many types may still be written. Limited, because references can make a small schema expand to a huge one. */
  remainingTypes: number;
}

/** Defines the TypedDict for a schema, unless it is defined already. Returns its name; null when there are too many. */
function defineShape(schema: JsonSchema, { hint, root, shapes }: Omit<TypeRequest, "schema">): string | null {
  const { names, definitions } = shapes;
  const known = names.get(schema);
  if (known !== undefined) return known;
  if (names.size >= MAX_SHAPES) return null;
  const { title } = schema;
  const wanted = typeof title === "string" && /^[A-Z]\w*$/.test(title) ? title : toClassName(hint);
  let name = wanted;
  for (let number = 2; definitions.has(name); number += 1) name = `${wanted}${number}`;
  names.set(schema, name); // before its fields are read, because a shape can contain itself
  definitions.set(name, "");
  const fields = shapeLines(schema, root, shapes);
  definitions.set(name, `class ${name}(TypedDict):\n${fields.map((line) => `    ${line}`).join("\n")}`);
  return name;
}

function toClassName(hint: string): string {
  const words = hint.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return /^[A-Z]/.test(name) ? name.slice(0, 40) : "Shape";
}

const MAX_LITERALS = 12;
const MAX_ALTERNATIVES = 8;
const MAX_DEPTH = 8;

interface TypeRequest {
  readonly schema: unknown;
  readonly root: JsonSchema;
  /** Name of the value, used to name its shape. */
  readonly hint: string;
  readonly shapes: Shapes;
  readonly depth?: number;
}

/** The Python type of a schema: `list[str]`, `Literal["a", "b"] | None`, or the name of a TypedDict. `Any` if it cannot be expressed. */
function toPythonType(request: TypeRequest): string {
  const parts = new Set(unionMembers(request));
  if (parts.size === 0 || parts.has("Any")) return "Any";
  const isNullable = parts.delete("None");
  return [...parts, ...(isNullable ? ["None"] : [])].join(" | ");
}

function unionMembers({ depth = 0, ...request }: TypeRequest): string[] {
  const { root } = request;
  const schema = followReferences(request.schema, root);
  request.shapes.remainingTypes -= 1;
  if (depth > MAX_DEPTH || request.shapes.remainingTypes < 0) return ["Any"];
  if ("const" in schema) return toLiteral([schema["const"]]);
  if (Array.isArray(schema["enum"])) return toLiteral(schema["enum"] as unknown[]);
  const branches = branchesOf(schema, root);
  if (branches.length > MAX_ALTERNATIVES) return ["Any"];
  if (branches.length > 0) return branches.flatMap((branch) => unionMembers({ ...request, schema: branch, depth: depth + 1 }));
  const types = typesIn(schema).length > 0 ? typesIn(schema) : Object.keys(propertiesOf(schema, root)).length > 0 ? ["object"] : [];
  return [...types.map((type) => toSingleType(type, { ...request, schema, depth })), ...(schema["nullable"] === true ? ["None"] : [])];
}

/** Empty for a schema without alternatives. A single `allOf` counts: older generators use it to add a description to a reference. */
function branchesOf(schema: JsonSchema, root: JsonSchema): readonly unknown[] {
  const branches = alternativesOf(schema, root);
  if (branches.length !== 1 || branches[0] !== schema) return branches;
  const { allOf } = schema;
  return Array.isArray(allOf) && allOf.length === 1 && typesIn(schema).length === 0 ? (allOf as unknown[]) : [];
}

function toSingleType(type: string, request: TypeRequest & { readonly schema: JsonSchema; readonly depth: number }): string {
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
      if (Object.keys(propertiesOf(schema, root)).length > 0) return defineShape(schema, request) ?? "dict";
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

function shapeLines(schema: JsonSchema, root: JsonSchema, shapes: Shapes): string[] {
  const required = requiredOf(schema, root);
  return Object.entries(propertiesOf(schema, root)).map(([name, property]) => {
    const type = toPythonType({ schema: property, root, hint: name, shapes });
    return `${toPythonKey(name)}: ${required.has(name) ? type : `NotRequired[${type}]`}`;
  });
}

/** Quotes a name that is invalid in Python. */
function toPythonKey(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) && !pythonKeywords.has(name) ? name : JSON.stringify(name);
}

/** A short Python literal of a JSON value. */
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
      .map((item) => toPython(item, depth + 1))
      .join(", ")}]`;
  const entries = Object.entries(value).slice(0, 20);
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}: ${toPython(item, depth + 1)}`).join(", ")}}`;
}

function toLiteral(values: readonly unknown[]): string[] {
  const nonNull = values.filter((value) => value !== null);
  const shown = nonNull.slice(0, MAX_LITERALS).map(toPythonValue);
  const isComplete = nonNull.length <= MAX_LITERALS && shown.every((text) => text !== "...");
  const types = nonNull.length === 0 ? [] : isComplete ? [`Literal[${shown.join(", ")}]`] : typesOfValues(nonNull);
  return nonNull.length < values.length ? [...types, "None"] : types;
}

/** The types of the values of an enum that is too long to list. */
function typesOfValues(values: readonly unknown[]): string[] {
  const names: Readonly<Record<string, string>> = { string: "str", number: "float", boolean: "bool" };
  return [...new Set(values.map((value) => names[typeof value] ?? "Any"))];
}

function singular(name: string): string {
  return name.length > 3 && name.endsWith("s") && !name.endsWith("ss") ? name.slice(0, -1) : name;
}
