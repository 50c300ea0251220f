import type { ToolError } from "../errors/tool-error.ts";
import { argumentOverriddenWarning, argumentsNotCheckedWarning } from "../prompts/result-notes.ts";
import { isRecord } from "../text/json.ts";
import { refuseArguments, refuseUnreadableArguments } from "../errors/parse-arguments.ts";
import { describeAjvErrors, type AjvError } from "../errors/schema-problems.ts";
import type { JsonSchema } from "./backend-tool.ts";
import { followReferences, propertiesOf } from "./read-schema.ts";
import { createJsonSchemaValidator, type SchemaVerdict } from "./create-json-schema-validator.ts";

export interface InputCheck {
  /** The name by which the tool was called. */
  readonly name: string;
  readonly schema: JsonSchema;
  readonly args: unknown;
  /** Arguments of the identity context, added if the schema names them or names nothing. They override the caller's; errors never mention or show them. */
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
}

export type InputVerdict =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>>; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly toolError: ToolError };

const notCalled = "The tool was not called";

/**
 * Validates arguments against the tool's JSON Schema before anything is sent. If the schema cannot be used or takes longer than 100 ms, returns a warning and
 * leaves the decision to the server. Never throws.
 */
export function checkToolInput(check: InputCheck): InputVerdict {
  try {
    return checkObject(check);
  } catch {
    return { ok: false, toolError: unreadableArguments(check.name) };
  }
}

function checkObject({ name, schema, args, extraArguments = {} }: InputCheck): InputVerdict {
  const fieldsAt = (path: readonly PropertyKey[]): string[] => listFields(schema, path);
  if (!isRecord(args)) {
    const problems = describeAjvErrors([{ keyword: "type", instancePath: "", params: { type: "object" } }], { value: args, fieldsAt });
    return { ok: false, toolError: refuseArguments({ tool: name, lead: notCalled, problems }) };
  }
  const extra = acceptedBy(schema, extraArguments);
  const merged = { ...args, ...extra };
  const overridden = Object.keys(extra).filter((key) => Object.hasOwn(args, key));
  const warnings = overridden.map(argumentOverriddenWarning);
  const verdict = validate(schema, merged, extra);
  if (verdict.status === "unusable") {
    return { ok: true, args: merged, warnings: [...warnings, argumentsNotCheckedWarning(name, verdict.reason)] };
  }
  if (verdict.status === "valid") return { ok: true, args: merged, warnings };
  const problems = describeAjvErrors(verdict.errors, { value: merged, fieldsAt });
  return { ok: false, toolError: refuseArguments({ tool: name, lead: notCalled, problems, examples: findExamples(schema, extra) }) };
}

/** Validates, ignoring errors about arguments of the identity context. */
function validate(schema: JsonSchema, args: unknown, extra: Readonly<Record<string, unknown>>): SchemaVerdict {
  const verdict = getValidator(schema)(args);
  if (verdict.status !== "invalid") return verdict;
  const errors = verdict.errors.filter((error) => !Object.hasOwn(extra, argumentName(error)));
  return errors.length === 0 ? { status: "valid" } : { status: "invalid", errors };
}

/** The argument that an error is about; empty for the whole call. */
function argumentName({ instancePath, params }: AjvError): string {
  const [, first] = instancePath.split("/");
  if (first !== undefined) return first.replaceAll("~1", "/").replaceAll("~0", "~");
  const named = params["missingProperty"] ?? params["additionalProperty"] ?? params["unevaluatedProperty"];
  return typeof named === "string" ? named : "";
}

const validators = new WeakMap<JsonSchema, (value: unknown) => SchemaVerdict>();

function getValidator(schema: JsonSchema): (value: unknown) => SchemaVerdict {
  const validate = validators.get(schema) ?? createJsonSchemaValidator(schema);
  validators.set(schema, validate);
  return validate;
}

/** Keeps the arguments that the schema names; all of them if it names none. */
function acceptedBy(schema: JsonSchema, extraArguments: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const properties = propertiesOf(followReferences(schema, schema), schema);
  if (Object.keys(properties).length === 0) return extraArguments;
  return Object.fromEntries(Object.entries(extraArguments).filter(([key]) => Object.hasOwn(properties, key)));
}

/** Enough to suggest the field that was meant. */
const MAX_FIELDS = 300;

function listFields(root: JsonSchema, path: readonly PropertyKey[]): string[] {
  let schema = followReferences(root, root);
  for (const key of path) {
    schema = followReferences(typeof key === "number" ? schema["items"] : propertiesOf(schema, root)[String(key)], root);
  }
  return Object.keys(propertiesOf(schema, root)).slice(0, MAX_FIELDS);
}

const MAX_EXAMPLE_CHARACTERS = 4_000;

/** The schema's own examples that are valid, without arguments of the identity context. */
function findExamples(schema: JsonSchema, extra: Readonly<Record<string, unknown>>): unknown[] {
  const examples = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]).slice(0, 3).filter(isRecord) : [];
  return examples
    .filter((example) => JSON.stringify(example).length <= MAX_EXAMPLE_CHARACTERS)
    .filter((example) => validate(schema, { ...example, ...extra }, extra).status === "valid")
    .map((example) => Object.fromEntries(Object.entries(example).filter(([key]) => !Object.hasOwn(extra, key))));
}

export function unreadableArguments(tool: string): ToolError {
  return refuseUnreadableArguments({ tool, lead: notCalled });
}
