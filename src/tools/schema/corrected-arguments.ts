import { nearestName } from "../../errors/nearest-name.ts";
import { isRecord } from "../../errors/is-record.ts";
import { receivedType } from "../../errors/received-type.ts";
import type { JsonSchema } from "../contract.ts";
import { alternativesOf, followReferences, propertiesOf, requiredOf, typesIn } from "./read-schema.ts";

type Path = readonly (string | number)[];

const MAX_DEPTH = 5;
const MAX_ITEMS = 20;
/** References can make a small schema stand for a huge one: past this there is no correction. */
const MAX_VALUES = 1_000;
/** Names are compared with each other; of very many only the first. */
const MAX_COMPARED = 300;
const MAX_MISSPELT = 20;

/**
 * Arguments that are as near to the given ones as the schema allows: what is right stays, misspelt names are put right, what is missing gets a
 * sample. A guess: whoever shows it validates it first. Throws RangeError when it would be too large.
 */
export function correctedArguments(args: unknown, schema: JsonSchema, isWrong: (path: Path) => boolean): unknown {
  let values = 0;
  let misspelt = 0;
  return correct({ value: args, schema, path: [] });

  function correct({ value, schema: given, path }: { value: unknown; schema: unknown; path: Path }): unknown {
    spend();
    const branch = branchFor(value, followReferences(given, schema));
    const types = typesIn(branch);
    if (path.length > MAX_DEPTH) return sample(branch);
    if (Array.isArray(branch["enum"])) return fromEnum(value, branch["enum"] as unknown[]);
    if ("const" in branch) return branch["const"];
    if (types.includes("object") && (isRecord(value) || path.length === 0))
      return correctObject(isRecord(value) ? value : {}, branch, path);
    if (types.includes("array") && Array.isArray(value)) return correctArray(value, branch, path);
    if (value === undefined || isWrong(path) || !fits(value, types)) return converted(value, types) ?? sample(branch, path.length);
    return value;
  }

  function correctObject(value: Readonly<Record<string, unknown>>, branch: JsonSchema, path: Path): Record<string, unknown> {
    const properties = propertiesOf(branch, schema);
    const isClosed = branch["additionalProperties"] === false || branch["unevaluatedProperties"] === false;
    const result = new Map<string, unknown>();
    for (const [key, one] of Object.entries(value)) {
      spend();
      const near = Object.hasOwn(properties, key) ? key : spelled(key, properties);
      const isFree = near !== null && (near === key || !Object.hasOwn(value, near));
      if (isFree) result.set(near, correct({ value: one, schema: properties[near], path: [...path, near] }));
      else if (!isClosed) result.set(key, one);
    }
    for (const name of requiredOf(branch, schema)) {
      if (!result.has(name)) result.set(name, correct({ value: undefined, schema: properties[name] ?? {}, path: [...path, name] }));
    }
    return Object.fromEntries(result);
  }

  function correctArray(value: readonly unknown[], branch: JsonSchema, path: Path): unknown[] {
    const { items, minItems, maxItems } = branch;
    const most = Math.min(MAX_ITEMS, typeof maxItems === "number" ? maxItems : MAX_ITEMS);
    const corrected = value
      .slice(0, most)
      .map((one, index) => (isRecord(items) ? correct({ value: one, schema: items, path: [...path, index] }) : one));
    while (corrected.length < Math.min(typeof minItems === "number" ? minItems : 0, most)) corrected.push(sample(items, path.length));
    return corrected;
  }

  function spelled(key: string, properties: object): string | null {
    misspelt += 1;
    return misspelt > MAX_MISSPELT ? null : nearestName(key, Object.keys(properties).slice(0, MAX_COMPARED));
  }

  function spend(): void {
    values += 1;
    if (values > MAX_VALUES) throw new RangeError("The arguments are too many to be corrected.");
  }

  function branchFor(value: unknown, of: JsonSchema): JsonSchema {
    const branches = alternativesOf(of, schema);
    const fitting = branches.find((branch) => value !== undefined && fits(value, typesIn(branch)));
    const chosen = fitting ?? branches.find((branch) => typesIn(branch).length !== 1 || typesIn(branch)[0] !== "null") ?? of;
    return chosen === of ? of : { ...of, anyOf: undefined, oneOf: undefined, ...chosen };
  }

  /** A value of the right form: the schema's own example where it has one. */
  function sample(given: unknown, depth = MAX_DEPTH): unknown {
    spend();
    const branch = branchFor(undefined, followReferences(given, schema));
    const { examples, minimum, exclusiveMinimum, maximum, minItems, items } = branch;
    if ("default" in branch && branch["default"] !== null) return branch["default"];
    if (Array.isArray(examples) && examples.length > 0) return examples[0] as unknown;
    if (Array.isArray(branch["enum"])) return branch["enum"][0] as unknown;
    if ("const" in branch) return branch["const"];
    const [type] = typesIn(branch);
    switch (type) {
      case "object":
        return depth >= MAX_DEPTH
          ? {}
          : correctObject(
              {},
              branch,
              Array.from({ length: depth + 1 }, () => ""),
            );
      case "array":
        return typeof minItems === "number" && minItems > 0 && depth < MAX_DEPTH
          ? Array.from({ length: Math.min(minItems, MAX_ITEMS) }, () => sample(items, depth + 1))
          : [];
      case "integer":
      case "number":
        if (typeof minimum === "number") return minimum;
        if (typeof exclusiveMinimum === "number") return exclusiveMinimum + 1;
        return typeof maximum === "number" && maximum < 1 ? maximum : 1;
      case "boolean":
        return true;
      case "null":
        return null;
      case undefined:
      default:
        return sampleText(branch);
    }
  }
}

/** Known by their text: a stranger's pattern is not run here. */
const patternFormats: Readonly<Record<string, string>> = {
  [String.raw`^\d{4}-\d{2}-\d{2}$`]: "date",
  "^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "date",
};

const formatSamples: Readonly<Record<string, string>> = {
  date: "2026-01-31",
  time: "12:00:00Z",
  "date-time": "2026-01-31T12:00:00Z",
  email: "name@example.com",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
  hostname: "example.com",
  ipv4: "192.0.2.1",
};

function sampleText({ format, pattern, minLength }: JsonSchema): string {
  const form = typeof format === "string" ? format : typeof pattern === "string" ? (patternFormats[pattern] ?? "") : "";
  return formatSamples[form] ?? "text".padEnd(typeof minLength === "number" ? Math.min(minLength, 200) : 0, "t");
}

function fits(value: unknown, types: readonly string[]): boolean {
  if (types.length === 0) return true;
  const type = receivedType(value);
  return types.includes(type) || (type === "number" && types.includes("integer") && Number.isInteger(value));
}

/** A number or a boolean that was sent as text, and the reverse. */
function converted(value: unknown, types: readonly string[]): unknown {
  if (typeof value === "string" && value.trim() !== "") {
    const number = Number(value);
    if (Number.isInteger(number) && types.includes("integer")) return number;
    if (Number.isFinite(number) && types.includes("number")) return number;
    if (types.includes("boolean") && /^(?:true|false)$/i.test(value)) return value.toLowerCase() === "true";
  }
  if ((typeof value === "number" || typeof value === "boolean") && types.includes("string")) return String(value);
  return undefined;
}

function fromEnum(value: unknown, allowed: readonly unknown[]): unknown {
  if (allowed.includes(value)) return value;
  const texts = allowed.slice(0, MAX_COMPARED).filter((one) => typeof one === "string");
  return (typeof value === "string" ? nearestName(value, texts) : null) ?? allowed[0];
}
