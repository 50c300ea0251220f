import { z } from "zod";
import { nearestName } from "./nearest-name.ts";
import { receivedType } from "./received-type.ts";

/** One thing that is wrong with a document: where, and what, as the rest of a sentence. */
export interface SchemaProblem {
  readonly path: string;
  readonly problem: string;
}

export interface SchemaCheck {
  readonly schema: z.ZodType;
  /** The document as it was checked. */
  readonly value: unknown;
  readonly issues: readonly z.core.$ZodIssue[];
  /** Whether a text may be repeated in a message. All may, unless told. */
  readonly mayShow?: (path: readonly PropertyKey[]) => boolean;
}

/** What a person who wrote the document needs: every fault, with its path, what is there, and for a wrong key the nearest right one. */
export function describeSchemaIssues({ schema, value, issues, mayShow = () => true }: SchemaCheck): SchemaProblem[] {
  return issues.flatMap((issue) => {
    const path = toPathText(issue.path);
    if (issue.code === "unrecognized_keys") {
      const at = schemaAt(schema, issue.path);
      return issue.keys.map((key) => ({ path: toPathText([...issue.path, key]), problem: describeKey(key, at, issue.path) }));
    }
    const found = valueAt(value, issue.path);
    return [{ path, problem: describeIssue(issue, found, mayShow(issue.path)) }];
  });
}

/** `limits.sandbox.openFiles`, `mcpServers["my server"].args[0]`. */
export function toPathText(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => {
      if (typeof step === "number") return `[${step}]`;
      if (!/^[A-Za-z_$][\w$-]*$/.test(String(step))) return `[${JSON.stringify(String(step))}]`;
      return index === 0 ? String(step) : `.${String(step)}`;
    })
    .join("");
}

function describeKey(key: string, at: JsonSchema | undefined, path: readonly PropertyKey[]): string {
  const known = Object.keys(at?.properties ?? {});
  const near = nearestName(key, known);
  if (near !== null) return `there is no such key. Did you mean ${near}?`;
  // The right key in the wrong place, as `limits.cellTimeoutMs` for `limits.sandbox.cellTimeoutMs`.
  const parent = known.find((name) => nearestName(key, Object.keys(at?.properties?.[name]?.properties ?? {})) !== null);
  if (parent !== undefined) {
    const deeper = nearestName(key, Object.keys(at?.properties?.[parent]?.properties ?? {}))!;
    return `there is no such key. Did you mean ${toPathText([...path, parent, deeper])}?`;
  }
  return known.length === 0 ? "there is no such key." : `there is no such key. There are: ${known.join(", ")}.`;
}

function describeIssue(issue: z.core.$ZodIssue, found: unknown, mayShow: boolean): string {
  const got = describeValue(found, mayShow);
  if (found === undefined && issue.code !== "custom")
    return `is missing${issue.code === "invalid_type" ? `: ${article(issue.expected)} is needed` : ""}.`;
  if (issue.code === "invalid_type") return `must be ${article(issue.expected)}, not ${got}.`;
  if (issue.code === "invalid_value") {
    const values = issue.values.map(String);
    const near = typeof found === "string" ? nearestName(found, values) : null;
    return `must be ${oneOf(values)}, not ${got}.${near === null ? "" : ` Did you mean ${near}?`}`;
  }
  if (issue.code === "too_small") return `must ${atLeast(issue)}${issue.origin === "array" ? "" : `, not ${got}`}.`;
  if (issue.code === "too_big") return `must ${atMost(issue)}${issue.origin === "array" ? "" : `, not ${got}`}.`;
  if (issue.code === "invalid_key") return "is no name that can be used here.";
  return `${issue.message}${/[.?!]$/.test(issue.message) ? "" : "."}`;
}

function atLeast({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  if (origin === "string") return `have at least ${minimum} character${Number(minimum) === 1 ? "" : "s"}`;
  if (origin === "array") return `have at least ${minimum} item${Number(minimum) === 1 ? "" : "s"}`;
  return inclusive === false ? `be more than ${minimum}` : `be at least ${minimum}`;
}

function atMost({ origin, maximum }: z.core.$ZodIssueTooBig): string {
  if (origin === "string") return `have at most ${maximum} characters`;
  return origin === "array" ? `have at most ${maximum} items` : `be at most ${maximum}`;
}

const words: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "text",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
};

function article(expected: string): string {
  return words[expected] ?? expected;
}

const LONGEST_SHOWN = 60;

function describeValue(value: unknown, mayShow: boolean): string {
  if (value === null) return "null";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return article(receivedType(value));
  const text = JSON.stringify(value);
  return mayShow && text.length <= LONGEST_SHOWN ? `the text ${text}` : "text";
}

function oneOf(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
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

/** What the schema says of the value at a path. */
function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): JsonSchema | undefined {
  let at: JsonSchema | undefined = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema;
  for (const step of path) {
    const more: JsonSchema | boolean | undefined = at?.additionalProperties;
    at = typeof step === "number" ? at?.items : (at?.properties?.[String(step)] ?? (typeof more === "object" ? more : undefined));
  }
  return at;
}
