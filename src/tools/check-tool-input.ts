import type { ToolError } from "../errors/tool-error.ts";
import { isRecord } from "../text/json.ts";
import { refuseArguments, refuseUnreadableArguments } from "../errors/parse-arguments.ts";
import { describeAjvErrors, type AjvError } from "../errors/schema-problems.ts";
import type { JsonSchema } from "./backend-tool.ts";
import { followReferences, propertiesOf } from "./read-schema.ts";
import { createJsonSchemaValidator, type SchemaVerdict } from "./validate-json-schema.ts";

export interface InputCheck {
  /** The name that the tool was called by. */
  readonly name: string;
  readonly schema: JsonSchema;
  readonly args: unknown;
  /**
   * What the session adds, where the tool's schema names it (or names nothing). It counts as given, replaces what the caller gave, and is never blamed or
   * shown.
   */
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
}

export type InputVerdict =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>>; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly toolError: ToolError };

const notCalled = "The tool was not called";

/** Compiled validators, one per schema object. */
const validators = new WeakMap<JsonSchema, (value: unknown) => SchemaVerdict>();

/**
 * Checks a call's arguments against the tool's JSON Schema before anything is sent. A foreign schema that cannot be used, or takes longer than 100 ms, is
 * a warning: the server decides then. Never throws.
 */
export function checkToolInput(check: InputCheck): InputVerdict {
  try {
    return checkObject(check);
  } catch {
    return { ok: false, toolError: unreadableArguments(check.name) };
  }
}

function checkObject({ name, schema, args, extraArguments = {} }: InputCheck): InputVerdict {
  const fieldsAt = (path: readonly PropertyKey[]): string[] => fieldsOf(schema, path);
  if (!isRecord(args)) {
    const problems = describeAjvErrors([{ keyword: "type", instancePath: "", params: { type: "object" } }], { value: args, fieldsAt });
    return { ok: false, toolError: refuseArguments({ tool: name, lead: notCalled, problems }) };
  }
  const extra = takenBy(schema, extraArguments);
  const merged = { ...args, ...extra };
  const overridden = Object.keys(extra).filter((key) => Object.hasOwn(args, key));
  const warnings = overridden.map((key) => `${key} is set by the session; the value in the call was not used.`);
  const verdict = validate(schema, merged, extra);
  if (verdict.status === "unusable") {
    const warning = `The arguments of ${name} were not checked before the call: its schema cannot be used here (${verdict.reason}).`;
    return { ok: true, args: merged, warnings: [...warnings, warning] };
  }
  if (verdict.status === "valid") return { ok: true, args: merged, warnings };
  const problems = describeAjvErrors(verdict.errors, { value: merged, fieldsAt });
  return { ok: false, toolError: refuseArguments({ tool: name, lead: notCalled, problems, examples: examplesOf(schema, extra) }) };
}

/** What the schema says of arguments, apart from those of the session. */
function validate(schema: JsonSchema, args: unknown, extra: Readonly<Record<string, unknown>>): SchemaVerdict {
  const verdict = validatorOf(schema)(args);
  if (verdict.status !== "invalid") return verdict;
  const errors = verdict.errors.filter((error) => !Object.hasOwn(extra, argumentOf(error)));
  return errors.length === 0 ? { status: "valid" } : { status: "invalid", errors };
}

/** Which argument an error is about; empty for the call as a whole. */
function argumentOf({ instancePath, params }: AjvError): string {
  const [, first] = instancePath.split("/");
  if (first !== undefined) return first.replaceAll("~1", "/").replaceAll("~0", "~");
  const named = params["missingProperty"] ?? params["additionalProperty"] ?? params["unevaluatedProperty"];
  return typeof named === "string" ? named : "";
}

function validatorOf(schema: JsonSchema): (value: unknown) => SchemaVerdict {
  const validate = validators.get(schema) ?? createJsonSchemaValidator(schema);
  validators.set(schema, validate);
  return validate;
}

/** A tool that does not know an argument of the session's does not get it. */
function takenBy(schema: JsonSchema, extraArguments: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const properties = propertiesOf(followReferences(schema, schema), schema);
  if (Object.keys(properties).length === 0) return extraArguments;
  return Object.fromEntries(Object.entries(extraArguments).filter(([key]) => Object.hasOwn(properties, key)));
}

/** Of a schema with very many fields, the first are enough to see which one was meant. */
const MAX_FIELDS = 300;

function fieldsOf(root: JsonSchema, path: readonly PropertyKey[]): string[] {
  let schema = followReferences(root, root);
  for (const key of path) {
    schema = followReferences(typeof key === "number" ? schema["items"] : propertiesOf(schema, root)[String(key)], root);
  }
  return Object.keys(propertiesOf(schema, root)).slice(0, MAX_FIELDS);
}

const MAX_EXAMPLE_CHARACTERS = 4_000;

/** The schema's own, where it has any that it accepts itself, without the arguments of the session. */
function examplesOf(schema: JsonSchema, extra: Readonly<Record<string, unknown>>): unknown[] {
  const own = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]).slice(0, 3).filter(isRecord) : [];
  return own
    .filter((example) => JSON.stringify(example).length <= MAX_EXAMPLE_CHARACTERS)
    .filter((example) => validate(schema, { ...example, ...extra }, extra).status === "valid")
    .map((example) => Object.fromEntries(Object.entries(example).filter(([key]) => !Object.hasOwn(extra, key))));
}

export function unreadableArguments(tool: string): ToolError {
  return refuseUnreadableArguments({ tool, lead: notCalled });
}
