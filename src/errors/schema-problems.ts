import { z } from "zod";
import { quote, toPathText } from "./argument-path.ts";
import { createToolError, type ToolError, type ToolErrorFacts } from "./tool-error.ts";
import type { ToolErrorCode } from "./error-table.ts";
import { nearestName } from "./nearest-name.ts";
import { receivedType } from "./received-type.ts";

/** One thing that is wrong with a call. All of them are collected, so that one repair can mend them all. */
export interface Problem {
  readonly code: ToolErrorCode;
  /** Into the arguments: `filters[0].field`; empty for the call as a whole. */
  readonly path: string;
  /** A whole sentence: `limit must be at most 500, not 501.` */
  readonly issue: string;
  readonly receivedType: string;
  readonly line?: number;
  readonly column?: number;
  readonly hints?: readonly string[];
}

/** What a validator found, whichever it was. */
export interface SchemaProblem extends Problem {
  /** The rest of a sentence that begins with the path: `must be a string, not 5.` */
  readonly problem: string;
}

/** An error of ajv, as far as it is used here. */
export interface AjvError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
}

type Path = readonly PropertyKey[];

/** What both validators report, in the words of JSON Schema. */
interface Fault {
  readonly path: Path;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Zod's own words, or what the alternatives of `anyOf` and `oneOf` say. */
  readonly message?: string;
}

interface Scene {
  readonly value: unknown;
  /** The names of the fields that the schema has at a path. */
  readonly fieldsAt: (path: Path) => readonly string[];
  /** Look for an unknown field one level deeper too. Not in a foreign schema, which may be large. */
  readonly looksDeeper?: boolean;
  /** Whether a text may be repeated in a message. All may by default. */
  readonly mayShow?: ((path: Path) => boolean) | undefined;
}

/** Larger calls are wrong in the same way over and over. */
const MAX_PROBLEMS = 100;

/** What breaks one of our own schemas: every fault, with its path, what was sent, and for an unknown field the nearest known one. */
export function problemsOfZod({
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
  return eachOnce(faults.slice(0, MAX_PROBLEMS).map((fault) => describe(fault, { value, mayShow, fieldsAt, looksDeeper: true })));
}

/** What breaks the JSON Schema of a foreign tool. */
export function problemsOfAjv(errors: readonly AjvError[], scene: Scene): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  for (const error of errors.slice(0, MAX_PROBLEMS)) {
    const fault = fromAjv(error, scene.value);
    // The faults of all alternatives come first, then that none fits: they become one.
    const inner: SchemaProblem[] = [];
    if (isUnmet(fault))
      while (problems.length > 0 && isWithin(problems.at(-1)!.path, toPathText(fault.path))) inner.unshift(problems.pop()!);
    problems.push(
      describe(
        {
          ...fault,
          message: inner
            .slice(0, 3)
            .map(({ issue }) => issue)
            .join(" Or: "),
        },
        scene,
      ),
    );
  }
  return eachOnce(problems);
}

/** What the refusal of a call says beside its problems. */
export interface RefusalFacts extends Pick<ToolErrorFacts, "tool" | "examples"> {
  /** What was not done: `The tool was not called`. */
  readonly lead: string;
  /** The code of the envelope where it is not that of its problems. */
  readonly code?: ToolErrorCode;
}

/** A call's arguments as one of our own schemas reads them, or the refusal of the call. */
export function parseArguments<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  facts: RefusalFacts,
): { readonly ok: true; readonly data: z.output<Schema> } | { readonly ok: false; readonly toolError: ToolError } {
  const { success, data, error } = schema.safeParse(input);
  if (success) return { ok: true, data };
  return { ok: false, toolError: refuseArguments({ ...facts, problems: problemsOfZod({ schema, value: input, issues: error.issues }) }) };
}

/** The refusal of a call whose arguments do not fit. */
export function refuseArguments({ lead, problems, code, ...facts }: RefusalFacts & { readonly problems: readonly Problem[] }): ToolError {
  const codes = new Set(problems.map((problem) => problem.code));
  const rest = problems.length - 1;
  return createToolError({
    ...facts,
    code: code ?? (codes.size === 1 ? problems[0]!.code : "INPUT_VALIDATION_FAILED"),
    summary: `${lead}. ${problems[0]!.issue}${rest === 0 ? "" : ` And ${rest} more problem${rest === 1 ? "" : "s"}.`}`,
    details: problems.map(({ code: error_code, path, issue, receivedType: received_type, line, column }) => ({
      path,
      issue,
      received_type,
      error_code,
      line,
      column,
    })),
    hints: problems.flatMap(({ hints }) => hints ?? []),
  });
}

/** The refusal of arguments with getters or traps that throw: they are not JSON, and nothing more can be said about them. */
export function refuseUnreadable(facts: Pick<RefusalFacts, "tool" | "lead">): ToolError {
  const issue = "The arguments cannot be read; they must be JSON.";
  return refuseArguments({ ...facts, problems: [{ code: "INPUT_VALIDATION_FAILED", path: "", issue, receivedType: "object" }] });
}

function eachOnce(problems: readonly SchemaProblem[]): SchemaProblem[] {
  return [...new Map(problems.map((problem) => [problem.issue, problem])).values()];
}

function describe(fault: Fault, scene: Scene): SchemaProblem {
  const found = valueAt(scene.value, fault.path);
  const [code, words, hint] = toWords(fault, found, scene);
  const path = toPathText(fault.path);
  const problem = hint === undefined ? words : `${words} ${hint}`;
  const issue = `${path === "" ? "The call" : path} ${problem}`;
  return { code, path, problem, issue, receivedType: receivedType(found), ...(hint !== undefined && { hints: [`${path}: ${hint}`] }) };
}

function toWords(
  { path, keyword, params, message = "" }: Fault,
  found: unknown,
  scene: Scene,
): [code: ToolErrorCode, problem: string, hint?: string] {
  const limit = String(params["limit"]);
  const got = typeof found === "string" && scene.mayShow?.(path) === false ? "a string" : describeValue(found);
  switch (keyword) {
    case "required":
      return ["SCHEMA_REQUIRED", "is missing."];
    case "additionalProperties":
      return ["SCHEMA_ADDITIONAL_PROPERTIES", "is not a known field.", knownFields(path, scene)];
    case "type": {
      const types = [params["type"]].flat().map(String);
      const isJsonText = typeof found === "string" && !types.includes("string") && /^\s*[[{]/.test(found);
      return [
        "SCHEMA_TYPE_MISMATCH",
        isJsonText ? `must be ${typeNames(types)}, not its JSON text.` : `must be ${typeNames(types)}, not ${got}.`,
      ];
    }
    case "enum": {
      const allowed = params["allowedValues"] as readonly unknown[];
      const names = allowed.slice(0, 300).filter((one) => typeof one === "string");
      const listed = `${allowed.length > 1 ? "one of " : ""}${allowed.slice(0, 20).map(toJson).join(", ")}${allowed.length > 20 ? ", …" : ""}`;
      const near = typeof found === "string" ? nearestName(found, names) : null;
      return ["SCHEMA_ENUM_MISMATCH", `must be ${listed}, not ${got}.`, near === null ? undefined : didYouMean(near)];
    }
    case "const":
      return ["SCHEMA_CONST_MISMATCH", `must be ${toJson(params["allowedValue"])}, not ${got}.`];
    case "maxItems":
      return ["SCHEMA_MAX_ITEMS", `has more than ${limit} items.`];
    case "minItems":
      return ["SCHEMA_MIN_ITEMS", limit === "1" ? "must not be empty." : `has fewer than ${limit} items.`];
    case "uniqueItems":
      return ["SCHEMA_UNIQUE_ITEMS", `has equal items: ${String(params["j"])} and ${String(params["i"])}.`];
    case "maxLength":
      return ["SCHEMA_MAX_LENGTH", `is longer than ${limit} characters.`];
    case "minLength":
      return ["SCHEMA_MIN_LENGTH", limit === "1" ? "must not be empty." : `is shorter than ${limit} characters.`];
    case "maximum":
    case "exclusiveMaximum":
      return ["SCHEMA_MAXIMUM", `must be ${keyword === "maximum" ? "at most" : "less than"} ${limit}, not ${got}.`];
    case "minimum":
    case "exclusiveMinimum":
      return ["SCHEMA_MINIMUM", `must be ${keyword === "minimum" ? "at least" : "more than"} ${limit}, not ${got}.`];
    case "multipleOf":
      return ["SCHEMA_MULTIPLE_OF", `must be a multiple of ${String(params["multipleOf"])}, not ${got}.`];
    case "pattern":
      return ["SCHEMA_PATTERN_MISMATCH", `must match the pattern ${quote(String(params["pattern"]))}, not ${got}.`];
    case "format":
      return ["SCHEMA_FORMAT_INVALID", `must have the format ${quote(String(params["format"]))}, not ${got}.`];
    case "oneOf":
    case "anyOf":
      return [keyword === "oneOf" ? "SCHEMA_ONE_OF_FAILED" : "SCHEMA_ANY_OF_FAILED", alternatives(params, message)];
    case "custom":
      return ["SCHEMA_VALIDATION_FAILED", /[.?!]$/.test(message) ? message : `${message}.`];
    default:
      return ["SCHEMA_VALIDATION_FAILED", `does not fit the schema's ${quote(keyword)}.`];
  }
}

/** A value that was sent, in few words: itself where it is short, else its type. */
function describeValue(value: unknown): string {
  if (typeof value === "string") return value.length <= 80 ? quote(value) : "a long string";
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  const type = receivedType(value);
  return type === "missing" ? "nothing" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;
}

function alternatives({ passingSchemas }: Fault["params"], message: string): string {
  if (Array.isArray(passingSchemas)) return "fits more than one of its alternatives.";
  return `fits none of its alternatives${message === "" ? "." : `: ${message}`}`;
}

function knownFields(path: Path, { fieldsAt, looksDeeper = false }: Scene): string | undefined {
  const [parent, key] = [path.slice(0, -1), String(path.at(-1))];
  const known = fieldsAt(parent);
  const near = nearestName(key, known);
  if (near !== null) return didYouMean(near);
  for (const name of looksDeeper ? known : []) {
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
  const path = pathOf(instancePath, value);
  const missing = params["missingProperty"];
  if (typeof missing === "string") return { path: [...path, missing], keyword: "required", params };
  const unknown = params["additionalProperty"] ?? params["unevaluatedProperty"];
  return typeof unknown === "string" ? { path: [...path, unknown], keyword: "additionalProperties", params } : { path, keyword, params };
}

function isUnmet({ keyword, params }: Fault): boolean {
  return (keyword === "anyOf" || keyword === "oneOf") && !Array.isArray(params["passingSchemas"]);
}

function isWithin(path: string, parent: string): boolean {
  return parent === "" || path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
}

/** Ajv does not say whether a step is an index or a key; the value does. */
function pathOf(pointer: string, root: unknown): (string | number)[] {
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
  let at: unknown = value;
  for (const step of path)
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step) ? (at as Record<PropertyKey, unknown>)[step] : undefined;
  return at;
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
}

/** A conversion takes milliseconds, and one refusal asks for many paths. */
const jsonSchemas = new WeakMap<z.ZodType, JsonSchema>();

/** What the schema says of the value at a path. */
function schemaAt(schema: z.ZodType, path: Path): JsonSchema | undefined {
  const root = jsonSchemas.get(schema) ?? (z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema);
  jsonSchemas.set(schema, root);
  let at: JsonSchema | undefined = root;
  for (const step of path) {
    const more: JsonSchema | boolean | undefined = at?.additionalProperties;
    at = typeof step === "number" ? at?.items : (at?.properties?.[String(step)] ?? (typeof more === "object" ? more : undefined));
  }
  return at;
}
