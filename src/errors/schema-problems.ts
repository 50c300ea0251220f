import { z } from "zod";
import { quote, toPathText } from "./argument-path.ts";
import type { ToolErrorCode } from "./error-table.ts";
import { nearestName } from "./nearest-name.ts";
import { receivedType } from "./tool-error.ts";

/** One problem with the arguments of a call. A refusal lists all problems, so that the caller can fix them in one go. */
export interface Problem {
  readonly code: ToolErrorCode;
  /** Path in the arguments, such as `filters[0].field`. Empty if the problem concerns the whole call. */
  readonly path: string;
  /** A complete sentence: `limit must be at most 500, not 501.` */
  readonly issue: string;
  readonly receivedType: string;
  readonly line?: number;
  readonly column?: number;
  readonly hints?: readonly string[];
}

/** A problem that a validator (Zod or Ajv) reported. */
export interface SchemaProblem extends Problem {
  /** The rest of a sentence that starts with the path: `must be a string, not 5.` */
  readonly problem: string;
}

/** The fields of an Ajv error that are used here. */
export interface AjvError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
}

type Path = readonly PropertyKey[];

/** An error of either validator, expressed as a JSON Schema keyword and its parameters. */
interface Fault {
  readonly path: Path;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Zod's own message, or the problems of the alternatives of `anyOf` and `oneOf`. */
  readonly message?: string;
}

/** What describing a fault needs to know about the call and the schema. */
interface FaultContext {
  readonly value: unknown;
  /** Returns the field names that the schema defines at a path. */
  readonly fieldsAt: (path: Path) => readonly string[];
  /** Also search for an unknown field one level deeper. Off for foreign schemas, which may be large. */
  readonly searchesDeeper?: boolean;
  /** Whether a message may quote the string at a path. Default: always. */
  readonly mayShow?: ((path: Path) => boolean) | undefined;
}

/** Beyond this number, the problems of a large call repeat themselves. */
const MAX_PROBLEMS = 100;

/** Describes the violations of one of our own schemas: each with its path, the value, and for an unknown field the nearest known one. */
export function describeZodIssues({
  schema,
  value,
  issues,
  mayShow,
}: {
  readonly schema: z.ZodType;
  readonly value: unknown;
  readonly issues: readonly z.core.$ZodIssue[];
  readonly mayShow?: (path: Path) => boolean;
}): SchemaProblem[] {
  const fieldsAt = (path: Path): string[] => Object.keys(schemaAt(schema, path)?.properties ?? {});
  const faults = issues.slice(0, MAX_PROBLEMS).flatMap((issue) => fromZod(issue, value));
  return uniqueByIssue(faults.slice(0, MAX_PROBLEMS).map((fault) => toProblem(fault, { value, mayShow, fieldsAt, searchesDeeper: true })));
}

/** Describes the violations of the JSON Schema of a foreign tool. */
export function describeAjvErrors(errors: readonly AjvError[], context: FaultContext): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  for (const error of errors.slice(0, MAX_PROBLEMS)) {
    const fault = fromAjv(error, context.value);
    // Ajv reports the errors of every alternative first, then that none of them matched. Merge them into one problem.
    const inner: SchemaProblem[] = [];
    if (matchesNoAlternative(fault))
      while (problems.length > 0 && isWithin(problems.at(-1)!.path, toPathText(fault.path))) inner.unshift(problems.pop()!);
    const issues = inner.slice(0, 3).map(({ issue }) => issue);
    problems.push(toProblem({ ...fault, message: issues.join(" Or: ") }, context));
  }
  return uniqueByIssue(problems);
}

function uniqueByIssue(problems: readonly SchemaProblem[]): SchemaProblem[] {
  return [...new Map(problems.map((problem) => [problem.issue, problem])).values()];
}

function toProblem(fault: Fault, context: FaultContext): SchemaProblem {
  const received = valueAt(context.value, fault.path);
  const [code, sentence, hint] = describeFault(fault, received, context);
  const path = toPathText(fault.path);
  const problem = hint === undefined ? sentence : `${sentence} ${hint}`;
  const issue = `${path === "" ? "The call" : path} ${problem}`;
  return { code, path, problem, issue, receivedType: receivedType(received), hints: hint === undefined ? [] : [`${path}: ${hint}`] };
}

type FaultDescription = [code: ToolErrorCode, problem: string, hint?: string | undefined];

function describeFault({ path, keyword, params, message = "" }: Fault, received: unknown, context: FaultContext): FaultDescription {
  const shown = typeof received === "string" && context.mayShow?.(path) === false ? "a string" : describeValue(received);
  switch (keyword) {
    case "required":
      return ["SCHEMA_REQUIRED", "is missing."];
    case "additionalProperties":
      return ["SCHEMA_ADDITIONAL_PROPERTIES", "is not a known field.", suggestField(path, context)];
    case "type":
      return ["SCHEMA_TYPE_MISMATCH", describeType([params["type"]].flat().map(String), received, shown)];
    case "enum":
      return describeEnum(params["allowedValues"] as readonly unknown[], received, shown);
    case "const":
      return ["SCHEMA_CONST_MISMATCH", `must be ${toJson(params["allowedValue"])}, not ${shown}.`];
    case "uniqueItems":
      return ["SCHEMA_UNIQUE_ITEMS", `has equal items: ${String(params["j"])} and ${String(params["i"])}.`];
    case "multipleOf":
      return ["SCHEMA_MULTIPLE_OF", `must be a multiple of ${String(params["multipleOf"])}, not ${shown}.`];
    case "pattern":
      return ["SCHEMA_PATTERN_MISMATCH", `must match the pattern ${quote(String(params["pattern"]))}, not ${shown}.`];
    case "format":
      return ["SCHEMA_FORMAT_INVALID", `must have the format ${quote(String(params["format"]))}, not ${shown}.`];
    case "oneOf":
    case "anyOf":
      return [keyword === "oneOf" ? "SCHEMA_ONE_OF_FAILED" : "SCHEMA_ANY_OF_FAILED", describeAlternatives(params, message)];
    case "custom":
      return ["SCHEMA_VALIDATION_FAILED", /[.?!]$/.test(message) ? message : `${message}.`];
    default:
      return bounds[keyword]?.(String(params["limit"]), shown) ?? ["SCHEMA_VALIDATION_FAILED", `violates ${quote(keyword)} of the schema.`];
  }
}

function describeType(types: readonly string[], received: unknown, shown: string): string {
  const isJsonText = typeof received === "string" && !types.includes("string") && /^\s*[[{]/.test(received);
  return isJsonText ? `must be ${typeNames(types)}, not its JSON text.` : `must be ${typeNames(types)}, not ${shown}.`;
}

function describeEnum(allowed: readonly unknown[], received: unknown, shown: string): FaultDescription {
  const names = allowed.slice(0, 300).filter((value) => typeof value === "string");
  const listed = `${allowed.length > 1 ? "one of " : ""}${allowed.slice(0, 20).map(toJson).join(", ")}${allowed.length > 20 ? ", …" : ""}`;
  const near = typeof received === "string" ? nearestName(received, names) : null;
  return ["SCHEMA_ENUM_MISMATCH", `must be ${listed}, not ${shown}.`, near === null ? undefined : didYouMean(near)];
}

/** The keywords with a limit. */
const bounds: { readonly [keyword in string]?: (limit: string, shown: string) => FaultDescription } = {
  maxItems: (limit) => ["SCHEMA_MAX_ITEMS", `has more than ${limit} items.`],
  minItems: (limit) => ["SCHEMA_MIN_ITEMS", limit === "1" ? "must not be empty." : `has fewer than ${limit} items.`],
  maxLength: (limit) => ["SCHEMA_MAX_LENGTH", `is longer than ${limit} characters.`],
  minLength: (limit) => ["SCHEMA_MIN_LENGTH", limit === "1" ? "must not be empty." : `is shorter than ${limit} characters.`],
  maximum: (limit, shown) => ["SCHEMA_MAXIMUM", `must be at most ${limit}, not ${shown}.`],
  exclusiveMaximum: (limit, shown) => ["SCHEMA_MAXIMUM", `must be less than ${limit}, not ${shown}.`],
  minimum: (limit, shown) => ["SCHEMA_MINIMUM", `must be at least ${limit}, not ${shown}.`],
  exclusiveMinimum: (limit, shown) => ["SCHEMA_MINIMUM", `must be more than ${limit}, not ${shown}.`],
};

/** A short description of a value: the value itself if it is short, otherwise its type. */
function describeValue(value: unknown): string {
  if (typeof value === "string") return value.length <= 80 ? quote(value) : "a long string";
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  const type = receivedType(value);
  return type === "missing" ? "nothing" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;
}

function describeAlternatives({ passingSchemas }: Fault["params"], message: string): string {
  if (Array.isArray(passingSchemas)) return "matches more than one of the alternatives.";
  return `matches none of the alternatives${message === "" ? "." : `: ${message}`}`;
}

function suggestField(path: Path, { fieldsAt, searchesDeeper = false }: FaultContext): string | undefined {
  const [parent, key] = [path.slice(0, -1), String(path.at(-1))];
  const known = fieldsAt(parent);
  const near = nearestName(key, known);
  if (near !== null) return didYouMean(near);
  for (const name of searchesDeeper ? known : []) {
    const deeper = nearestName(key, fieldsAt([...parent, name]));
    if (deeper !== null) return didYouMean(toPathText([...parent, name, deeper]));
  }
  return known.length === 0 ? undefined : `Known fields: ${known.slice(0, 40).join(", ")}.`;
}

function didYouMean(name: string): string {
  return `Did you mean ${quote(name)}?`;
}

function typeNames(types: readonly string[]): string {
  const names = types.map((type) => (type === "null" ? "null" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`));
  return names.length < 2 ? String(names[0]) : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

function toJson(value: unknown): string {
  return typeof value === "string" ? quote(value) : (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

/** Expresses a Zod issue as JSON Schema keywords. Zod reports a missing field as a wrong type; here it becomes `required`. */
function fromZod(issue: z.core.$ZodIssue, value: unknown): Fault[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({ path: [...path, key], keyword: "additionalProperties", params: {} }));
  }
  if (issue.code !== "custom" && path.length > 0 && valueAt(value, path) === undefined) return [{ path, keyword: "required", params: {} }];
  switch (issue.code) {
    case "invalid_type":
      return [{ path, keyword: "type", params: { type: zodTypes[issue.expected] ?? issue.expected } }];
    case "invalid_value":
      return [{ path, keyword: "enum", params: { allowedValues: issue.values } }];
    case "too_small":
      return [{ path, keyword: bound("min", issue), params: { limit: issue.minimum } }];
    case "too_big":
      return [{ path, keyword: bound("max", issue), params: { limit: issue.maximum } }];
    case "invalid_key":
      return [{ path, keyword: "custom", params: {}, message: "is not a valid name here" }];
    case "custom":
    case "invalid_element":
    case "invalid_format":
    case "invalid_union":
    case "not_multiple_of":
      return [{ path, keyword: "custom", params: {}, message: issue.message }];
  }
}

const zodTypes: Readonly<Record<string, string>> = { int: "integer", record: "object", tuple: "array" };

function bound(side: "min" | "max", { origin, inclusive }: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  if (origin === "string") return `${side}Length`;
  if (origin === "array") return `${side}Items`;
  return inclusive === false ? `exclusive${side === "min" ? "Minimum" : "Maximum"}` : `${side}imum`;
}

function fromAjv({ keyword, instancePath, params }: AjvError, value: unknown): Fault {
  const path = parsePointer(instancePath, value);
  const missing = params["missingProperty"];
  if (typeof missing === "string") return { path: [...path, missing], keyword: "required", params };
  const unknown = params["additionalProperty"] ?? params["unevaluatedProperty"];
  return typeof unknown === "string" ? { path: [...path, unknown], keyword: "additionalProperties", params } : { path, keyword, params };
}

function matchesNoAlternative({ keyword, params }: Fault): boolean {
  return (keyword === "anyOf" || keyword === "oneOf") && !Array.isArray(params["passingSchemas"]);
}

function isWithin(path: string, parent: string): boolean {
  return parent === "" || path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
}

/** Parses a JSON pointer. The pointer does not say whether a step is an index or a key, so the value decides. */
function parsePointer(pointer: string, root: unknown): (string | number)[] {
  const path: (string | number)[] = [];
  let value = root;
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(value) ? Number(key) : key);
    value = valueAt(value, [key]);
  }
  return path;
}

function valueAt(value: unknown, path: Path): unknown {
  let found: unknown = value;
  for (const key of path)
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, key) ? (found as Record<PropertyKey, unknown>)[key] : undefined;
  return found;
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
}

/** Cached because a conversion takes milliseconds and one refusal looks up many paths. */
const jsonSchemas = new WeakMap<z.ZodType, JsonSchema>();

/** Returns the JSON Schema of the value at a path. */
function schemaAt(schema: z.ZodType, path: Path): JsonSchema | undefined {
  const root = jsonSchemas.get(schema) ?? (z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema);
  jsonSchemas.set(schema, root);
  let found: JsonSchema | undefined = root;
  for (const key of path) {
    const others: JsonSchema | boolean | undefined = found?.additionalProperties;
    found =
      typeof key === "number" ? found?.items : (found?.properties?.[String(key)] ?? (typeof others === "object" ? others : undefined));
  }
  return found;
}
