import { createHash } from "node:crypto";
import { below } from "../errors/argument-path.ts";
import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import type { EnvelopeCode } from "../errors/envelope-table.ts";
import { isRecord } from "../errors/is-record.ts";
import { receivedType } from "../errors/received-type.ts";
import type { CatalogTool } from "./assign-names.ts";
import type { BackendTool, JsonSchema } from "./contract.ts";
import { correctedArguments } from "./schema/corrected-arguments.ts";
import { hasMoreParts, measureSchema } from "./schema/measure-schema.ts";
import { followReferences, propertiesOf } from "./schema/read-schema.ts";
import { createSchemaThread } from "./schema/schema-thread.ts";
import { keysOf, toProblems, type InputProblem } from "./schema/to-problems.ts";
import { createJsonSchemaValidator, type JsonSchemaValidator, type SchemaVerdict } from "./schema/validate-json-schema.ts";

export interface InputCheck {
  readonly tool: CatalogTool;
  /** The name it was called by; the tool's own when it is left out. */
  readonly name?: string;
  readonly args: unknown;
  /**
   * What the session adds, where the tool's schema names it (or names nothing). It counts as given, replaces what the caller gave, is never blamed and
   * never shown.
   */
  readonly extraArguments?: Readonly<Record<string, unknown>>;
}

export type InputVerdict =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>>; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly envelope: Envelope };

/**
 * Holds a call's arguments against the tool's JSON Schema before anything is sent. Schemas are written by strangers: what may take long runs in a thread
 * of its own and is ended at a deadline, and a schema that cannot be used is a warning, after which the server itself decides. Never rejects.
 */
export interface InputChecker extends AsyncDisposable {
  check(call: InputCheck): Promise<InputVerdict>;
  /** Idempotent. An idle checker does not keep the process alive. */
  close(): Promise<void>;
}

type Validate = (value: unknown) => SchemaVerdict | Promise<SchemaVerdict>;

/** Of larger values only the first problem is told. */
const MAX_EXPLAINED_PARTS = 20_000;
const MAX_EXAMPLE_CHARACTERS = 4_000;
const MAX_REMEMBERED = 1_000;
/** Of a schema with very many, the first are enough to see which one was meant. */
const MAX_FIELDS = 300;

export function createInputChecker({ timeoutMs }: { timeoutMs?: number } = {}): InputChecker {
  const thread = createSchemaThread({ timeoutMs });
  const validators = new WeakMap<BackendTool, Validate>();
  /** What was too much for the thread once is not tried again. By its text: a server may list the same tool anew. */
  const unusable = new Map<string, SchemaVerdict>();

  function validatorOf(tool: BackendTool): Validate {
    const known = validators.get(tool);
    if (known !== undefined) return known;
    const made = makeValidator(tool.inputSchema);
    validators.set(tool, made);
    return made;
  }

  function makeValidator(schema: JsonSchema): Validate {
    const weight = measureSchema(schema);
    if (weight === "unusable") return () => ({ status: "unusable", reason: "it is too large" });
    if (weight === "plain") return onMainThread(createJsonSchemaValidator(schema));
    const schemaJson = JSON.stringify(schema);
    const key = createHash("sha256").update(schemaJson).digest("hex");
    return async (value) => {
      const before = unusable.get(key);
      if (before !== undefined) return before;
      const verdict = await thread.validate({ key, schemaJson, value, firstIssueOnly: hasMoreParts(value, MAX_EXPLAINED_PARTS) });
      if (verdict.status === "unusable" && unusable.size < MAX_REMEMBERED) unusable.set(key, verdict);
      return verdict;
    };
  }

  return {
    async check(call) {
      try {
        return await checkInput(call, validatorOf(call.tool.tool));
      } catch {
        return { ok: false, envelope: unreadable(call) };
      }
    },
    close: () => thread.close(),
    [Symbol.asyncDispose]: () => thread.close(),
  };
}

function onMainThread(validator: JsonSchemaValidator): Validate {
  return (value) => validator.validate(value, { firstIssueOnly: hasMoreParts(value, MAX_EXPLAINED_PARTS) });
}

async function checkInput(call: InputCheck, validate: Validate): Promise<InputVerdict> {
  const { tool, args, name = tool.name } = call;
  if (!isRecord(args)) return { ok: false, envelope: notAnObject(name, args) };
  const extraArguments = takenBy(tool.tool.inputSchema, call.extraArguments ?? {});
  const merged = { ...args, ...extraArguments };
  const verdict = await validate(merged);
  const overridden = Object.keys(extraArguments).filter((key) => Object.hasOwn(args, key));
  const warnings = overridden.map((key) => `${key} is set by the session; the value in the call was not used.`);
  if (verdict.status === "valid") return { ok: true, args: merged, warnings };
  if (verdict.status === "unusable") {
    const warning = `The arguments of ${name} were not checked before the call: its schema cannot be used here (${verdict.reason}).`;
    return { ok: true, args: merged, warnings: [...warnings, warning] };
  }
  const schema = tool.tool.inputSchema;
  const isExtra = (key: unknown): boolean => typeof key === "string" && Object.hasOwn(extraArguments, key);
  const issues = verdict.issues.filter(({ pointer }) => !isExtra(keysOf(pointer, merged)[0]));
  const all = toProblems(issues, { args: merged, fieldsAt: (pointer) => fieldsAt(pointer, schema, merged) });
  const problems = all.filter(({ argument }) => !isExtra(argument));
  if (problems.length === 0) return { ok: true, args: merged, warnings };
  return { ok: false, envelope: toEnvelope(name, problems, await exampleOf({ ...call, extraArguments }, problems, validate)) };
}

/** A tool that does not know an argument of the session's does not get it. */
function takenBy(schema: JsonSchema, extraArguments: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const properties = propertiesOf(followReferences(schema, schema), schema);
  if (Object.keys(properties).length === 0) return extraArguments;
  return Object.fromEntries(Object.entries(extraArguments).filter(([key]) => Object.hasOwn(properties, key)));
}

function fieldsAt(pointer: string, root: JsonSchema, args: unknown): string[] {
  let schema = followReferences(root, root);
  for (const key of keysOf(pointer, args)) {
    schema = followReferences(typeof key === "number" ? schema["items"] : propertiesOf(schema, root)[key], root);
  }
  return Object.keys(propertiesOf(schema, root)).slice(0, MAX_FIELDS);
}

/** A call that the schema accepts, or none. The session's arguments are not in it. */
async function exampleOf(
  { tool, args, extraArguments = {} }: InputCheck,
  problems: readonly InputProblem[],
  validate: Validate,
): Promise<unknown[]> {
  const wrong = new Set(problems.map(({ path }) => path));
  const isWrong = (path: readonly (string | number)[]): boolean => wrong.has(path.reduce<string>(below, ""));
  const merged = orNull(() => correctedArguments({ ...(args as object), ...extraArguments }, tool.tool.inputSchema, isWrong));
  if (!isRecord(merged) || (await validate(merged)).status !== "valid") return [];
  const example = Object.fromEntries(Object.entries(merged).filter(([key]) => !Object.hasOwn(extraArguments, key)));
  return JSON.stringify(example).length > MAX_EXAMPLE_CHARACTERS ? [] : [example];
}

function orNull(make: () => unknown): unknown {
  try {
    return make();
  } catch {
    return null;
  }
}

function toEnvelope(tool: string, problems: readonly InputProblem[], examples: readonly unknown[]): Envelope {
  const [first] = problems;
  const codes = new Set(problems.map(({ code }) => code));
  const code: EnvelopeCode = codes.size === 1 && first ? first.code : "INPUT_VALIDATION_FAILED";
  return createEnvelope({
    code,
    tool,
    summary:
      problems.length === 1 && first ? `The tool was not called. ${first.issue}` : `The tool was not called: ${problems.length} problems.`,
    details: problems.map(({ code, path, issue, receivedType }) => ({ path, issue, received_type: receivedType, error_code: code })),
    hints: problems.flatMap(({ hints }) => hints),
    examples,
  });
}

function notAnObject(tool: string, args: unknown): Envelope {
  const type = receivedType(args);
  const not = type === "missing" ? "nothing" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;
  const issue = `The call must be an object of arguments by name, not ${not}.`;
  return createEnvelope({
    code: "SCHEMA_TYPE_MISMATCH",
    tool,
    summary: `The tool was not called. ${issue}`,
    details: [{ path: "", issue, received_type: type, error_code: "SCHEMA_TYPE_MISMATCH" }],
  });
}

/** A value with getters or traps that throw is no JSON; nothing more can be said about it. */
function unreadable({ tool, name = tool.name }: InputCheck): Envelope {
  const issue = "The arguments cannot be read; they must be JSON.";
  return createEnvelope({
    code: "INPUT_VALIDATION_FAILED",
    tool: name,
    summary: `The tool was not called. ${issue}`,
    details: [{ path: "", issue, received_type: "object" }],
  });
}
