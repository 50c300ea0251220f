import { below, quote } from "../../errors/argument-path.ts";
import { describeValue } from "../../errors/describe-value.ts";
import type { EnvelopeCode } from "../../errors/envelope-table.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { receivedType } from "../../errors/received-type.ts";
import type { SchemaIssue } from "./validate-json-schema.ts";

/** One thing that is wrong with the arguments. */
export interface InputProblem {
  readonly code: EnvelopeCode;
  readonly path: string;
  /** The first step of `path`: which argument it is about. */
  readonly argument: string | null;
  readonly issue: string;
  readonly receivedType: string;
  readonly hints: readonly string[];
}

export interface ProblemContext {
  readonly args: unknown;
  /** Names of the properties that the schema has at the end of a pointer; for "Did you mean". */
  readonly fieldsAt: (pointer: string) => readonly string[];
}

/** The validator's errors in the codes and words of an envelope; of alternatives, what can be said in one sentence. */
export function toProblems(issues: readonly SchemaIssue[], context: ProblemContext): InputProblem[] {
  const isIf = ({ keyword }: SchemaIssue): boolean => keyword === "if";
  const telling = issues.every(isIf) ? issues : issues.filter((issue) => !isIf(issue));
  const problems = foldAlternatives(telling).map((issue) => toProblem(issue, context));
  return [...new Map(problems.map((problem) => [`${problem.code} ${problem.path} ${problem.issue}`, problem])).values()];
}

interface FoldedIssue extends SchemaIssue {
  /** What the alternatives wanted, where that is a type each. */
  readonly types?: readonly string[];
  /** What the alternatives said. */
  readonly inner?: readonly SchemaIssue[];
}

/** The validator gives the errors of all alternatives and then the error that none fits. */
function foldAlternatives(issues: readonly SchemaIssue[]): FoldedIssue[] {
  const folded: FoldedIssue[] = [];
  for (const issue of issues) {
    if ((issue.keyword !== "anyOf" && issue.keyword !== "oneOf") || Array.isArray(issue.params["passingSchemas"])) {
      folded.push(issue);
      continue;
    }
    const inner: FoldedIssue[] = [];
    while (folded.length > 0 && isWithin(folded.at(-1)!.pointer, issue.pointer)) inner.unshift(folded.pop()!);
    folded.push(...foldOne(issue, inner));
  }
  return folded;
}

function foldOne(issue: SchemaIssue, inner: readonly FoldedIssue[]): FoldedIssue[] {
  const isTypeHere = ({ keyword, pointer }: FoldedIssue): boolean => keyword === "type" && pointer === issue.pointer;
  const wantsNull = ({ keyword, params }: FoldedIssue): boolean => keyword === "type" && params["type"] === "null";
  if (inner.length > 0 && inner.every(isTypeHere)) {
    return [{ ...issue, keyword: "type", types: [...new Set(inner.flatMap(({ types, params }) => types ?? typesOf(params)))] }];
  }
  // "This or null": what is wrong with this is what there is to say.
  const others = inner.filter((one) => !wantsNull(one));
  if (issue.alternatives?.notNull === 1 && others.length > 0) return others;
  return [{ ...issue, inner: others }];
}

function isWithin(pointer: string, parent: string): boolean {
  return pointer === parent || pointer.startsWith(`${parent}/`);
}

function toProblem(issue: FoldedIssue, context: ProblemContext): InputProblem {
  const keys = keysOf(issue.pointer, context.args);
  const path = keys.reduce<string>(below, "");
  const value = keys.reduce<unknown>(valueAt, context.args);
  const name = path === "" ? "The call" : path;
  const { params } = issue;
  const limit = String(params["limit"]);
  const at = (code: EnvelopeCode, sentence: string, hints: readonly string[] = []): InputProblem => ({
    code,
    path,
    argument: keys[0] === undefined ? null : String(keys[0]),
    issue: sentence,
    receivedType: receivedType(value),
    hints,
  });
  switch (issue.keyword) {
    case "required":
    case "dependentRequired":
    case "dependencies":
      return missing(String(params["missingProperty"]));
    case "additionalProperties":
      return unknown(String(params["additionalProperty"]));
    case "unevaluatedProperties":
      return unknown(String(params["unevaluatedProperty"]));
    case "type": {
      const types = issue.types ?? typesOf(params);
      return at("SCHEMA_TYPE_MISMATCH", `${name} must be ${typeNames(types)}, not ${describeValue(value)}.`, asText(value, types, name));
    }
    case "enum": {
      const allowed = Array.isArray(params["allowedValues"]) ? (params["allowedValues"] as unknown[]) : [];
      const near =
        typeof value === "string"
          ? nearestName(
              value,
              allowed.filter((one) => typeof one === "string"),
            )
          : null;
      const listed = allowed.slice(0, 20).map(toJson).join(", ");
      const more = allowed.length > 20 ? ", …" : "";
      return at("SCHEMA_ENUM_MISMATCH", `${name} must be one of ${listed}${more}, not ${describeValue(value)}.`, meant(near));
    }
    case "const":
      return at("SCHEMA_CONST_MISMATCH", `${name} must be ${toJson(params["allowedValue"])}, not ${describeValue(value)}.`);
    case "maxItems":
      return at("SCHEMA_MAX_ITEMS", `${name} has more than ${limit} items.`);
    case "minItems":
      return at("SCHEMA_MIN_ITEMS", `${name} has fewer than ${limit} items.`);
    case "uniqueItems":
      return at("SCHEMA_UNIQUE_ITEMS", `${name} has equal items: ${String(params["j"])} and ${String(params["i"])}.`);
    case "maxLength":
      return at("SCHEMA_MAX_LENGTH", `${name} is longer than ${limit} characters.`);
    case "minLength":
      return at("SCHEMA_MIN_LENGTH", `${name} is shorter than ${limit} characters.`);
    case "maximum":
    case "exclusiveMaximum":
      return at("SCHEMA_MAXIMUM", `${name} must be ${comparison(params)} ${limit}, not ${describeValue(value)}.`);
    case "minimum":
    case "exclusiveMinimum":
      return at("SCHEMA_MINIMUM", `${name} must be ${comparison(params)} ${limit}, not ${describeValue(value)}.`);
    case "multipleOf":
      return at("SCHEMA_MULTIPLE_OF", `${name} must be a multiple of ${String(params["multipleOf"])}, not ${describeValue(value)}.`);
    case "pattern":
      return at(
        "SCHEMA_PATTERN_MISMATCH",
        `${name} must fit the pattern ${quote(String(params["pattern"]))}, not ${describeValue(value)}.`,
      );
    case "format":
      return at("SCHEMA_FORMAT_INVALID", `${name} must be of the format ${quote(String(params["format"]))}, not ${describeValue(value)}.`);
    case "oneOf":
      return Array.isArray(params["passingSchemas"])
        ? at("SCHEMA_ONE_OF_FAILED", `${name} fits more than one of its ${countOf(issue)} alternatives.`)
        : at("SCHEMA_ONE_OF_FAILED", `${name} fits none of its ${countOf(issue)} alternatives.`, said(issue, context));
    case "anyOf":
      return at("SCHEMA_ANY_OF_FAILED", `${name} fits none of its ${countOf(issue)} alternatives.`, said(issue, context));
    default:
      return at("SCHEMA_VALIDATION_FAILED", `${name} does not fit the schema's ${quote(issue.keyword)}.`);
  }

  function missing(key: string): InputProblem {
    const sentence = `Required field missing: '${key}'.`;
    const problem = { code: "SCHEMA_REQUIRED", path: below(path, key), argument: String(keys[0] ?? key) } as const;
    return { ...problem, issue: sentence, receivedType: "missing", hints: [sentence] };
  }

  function unknown(key: string): InputProblem {
    const sentence = `Unknown field '${clipped(key)}'.`;
    const fields = context.fieldsAt(issue.pointer);
    const known = fields.length > 0 ? [`${path === "" ? "The call" : path} has these fields: ${fields.slice(0, 40).join(", ")}.`] : [];
    const problem = { code: "SCHEMA_ADDITIONAL_PROPERTIES", path: below(path, key), argument: String(keys[0] ?? key) } as const;
    const near = nearestName(key, fields);
    return { ...problem, issue: sentence, receivedType: receivedType(valueAt(value, key)), hints: [sentence, ...meant(near), ...known] };
  }
}

function said({ inner = [] }: FoldedIssue, context: ProblemContext): string[] {
  return inner.slice(0, 3).map((issue) => `One alternative says: ${toProblem(issue, context).issue}`);
}

function countOf({ alternatives }: FoldedIssue): string {
  return String(alternatives?.all ?? "");
}

function meant(near: string | null): string[] {
  return near === null ? [] : [`Did you mean '${near}'?`];
}

function comparison(params: SchemaIssue["params"]): string {
  const words: Readonly<Record<string, string>> = { "<=": "at most", ">=": "at least", "<": "less than", ">": "more than" };
  return words[String(params["comparison"])] ?? String(params["comparison"]);
}

/** The validator does not say whether a step is an index or a key; the value does. */
export function keysOf(pointer: string, root: unknown): (string | number)[] {
  const keys: (string | number)[] = [];
  let value = root;
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    keys.push(Array.isArray(value) ? Number(key) : key);
    value = valueAt(value, key);
  }
  return keys;
}

function valueAt(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}

function typesOf(params: SchemaIssue["params"]): string[] {
  return [params["type"]].flat().map(String);
}

function typeNames(types: readonly string[]): string {
  const names = types.map((type) => (type === "null" ? "null" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`));
  const last = names.at(-1) ?? "something else";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} or ${last}`;
}

/** Models sometimes send the JSON text of an object instead of the object. */
function asText(value: unknown, types: readonly string[], name: string): string[] {
  if (typeof value !== "string" || types.includes("string") || !/^\s*[[{]/.test(value)) return [];
  return [`${name} was sent as JSON text. Send the value itself.`];
}

function toJson(value: unknown): string {
  return clipped(JSON.stringify(value) ?? String(value));
}

function clipped(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
