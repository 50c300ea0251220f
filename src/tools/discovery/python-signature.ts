import { isRecord } from "../../errors/is-record.ts";
import type { BackendTool, JsonSchema } from "../contract.ts";
import { followReferences, propertiesOf, requiredOf } from "../schema/read-schema.ts";
import { shapeLines, toPythonKey, toPythonType, toPythonValue, type ShapeNames } from "./python-type.ts";

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
