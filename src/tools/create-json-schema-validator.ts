import { hash as computeHash } from "node:crypto";
import { createContext, Script } from "node:vm";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import type { AjvError } from "../errors/schema-problems.ts";
import type { JsonSchema } from "./backend-tool.ts";

export type SchemaVerdict =
  | { readonly status: "valid" }
  | { readonly status: "invalid"; readonly errors: readonly AjvError[] }
  /** The schema cannot be compiled, makes the validator fail, or takes too long. */
  | { readonly status: "unusable"; readonly reason: string };

const TIME_LIMIT_MS = 100;
/** On a busy machine, the time limit doubles up to this until the validator has had enough CPU time. */
const MAX_TIME_LIMIT_MS = 1_600;
/** A schema that has failed this often is not used again. */
const MAX_FAILURES = 3;
const MAX_ERRORS = 100;
/** Limits the memory of a validator, which collects errors before we keep MAX_ERRORS of them. */
const MAX_HELD_ERRORS = 10_000;

/** By hash of the schema, so that a server that sends its schema again does not reset the count. */
const failures = new Map<string, { readonly count: number; readonly reason: string }>();
const MAX_FAILED_CHECKS = 1_000;

type Check = (value: unknown, isLimited: boolean) => SchemaVerdict;

/**
 * Creates a validator for an untrusted schema. It never throws, and uses at most about 100 ms of CPU time to decide and as much to collect all errors. If
 * collecting takes longer or finds too many, it returns only the first error.
 */
export function createJsonSchemaValidator(schema: JsonSchema): (value: unknown) => SchemaVerdict {
  const hash = hashSchema(schema);
  if (hash === null) return () => ({ status: "unusable", reason: "it is nested too deeply" });
  const isFastSchema = isSmall(schema, slowKeywords);
  const decide = createCheck(schema, { key: `${hash} decide`, allErrors: false });
  const explain = createCheck(schema, { key: `${hash} explain`, allErrors: true });
  return (value) => {
    const isLimited = !isFastSchema || !isSmall(value);
    const verdict = decide(value, isLimited);
    if (verdict.status !== "invalid") return verdict;
    const explained = explain(value, isLimited);
    return explained.status === "invalid" ? explained : verdict;
  };
}

function hashSchema(schema: JsonSchema): string | null {
  try {
    return computeHash("sha256", JSON.stringify(schema));
  } catch {
    return null;
  }
}

function createCheck(schema: JsonSchema, { key, allErrors }: { readonly key: string; readonly allErrors: boolean }): Check {
  let validate: ValidateFunction | null = null;

  function run(value: unknown): SchemaVerdict {
    validate ??= compile(schema, { ...options, allErrors });
    if (validate(value)) return { status: "valid" };
    const errors = firstErrors(validate.errors ?? []);
    validate.errors = null; // free the memory
    return { status: "invalid", errors };
  }

  return (value, isLimited) => {
    const { count, reason } = failures.get(key) ?? { count: 0, reason: "" };
    if (count >= MAX_FAILURES) return { status: "unusable", reason };
    try {
      return isLimited ? runLimited(() => run(value)) : run(value);
    } catch (error) {
      // Thrown by the code that limitErrors adds.
      if (Array.isArray(error)) return { status: "unusable", reason: `it finds more than ${MAX_HELD_ERRORS} errors` };
      validate = null; // it may have been interrupted in any state
      const failure = { count: count + 1, reason: describeFailure(error) };
      failures.set(key, failure);
      if (failures.size > MAX_FAILED_CHECKS) failures.delete(failures.keys().next().value!);
      return { status: "unusable", reason: failure.reason };
    }
  };
}

/** Keeps the `anyOf` or `oneOf` error that follows the errors of its alternatives. Without it, each would look like a problem of its own. */
function firstErrors(errors: ErrorObject[]): AjvError[] {
  if (errors.length <= MAX_ERRORS) return errors;
  const first = errors.slice(0, MAX_ERRORS - 1);
  const { instancePath: last } = first.at(-1)!;
  const rest = errors.slice(first.length);
  const summary = rest.find(({ keyword, instancePath }) => /^(?:any|one)Of$/.test(keyword) && last.startsWith(instancePath));
  return [...first, summary ?? rest[0]!];
}

const script = new Script("run()");
/** Shared, because creating one takes a millisecond. */
const context: { run?: () => SchemaVerdict } = createContext({});

/** The time limit of `vm` is wall-clock time. If the thread got little CPU time, the machine was busy and the limit is raised. */
function runLimited(run: () => SchemaVerdict): SchemaVerdict {
  for (let timeout = TIME_LIMIT_MS; ; timeout *= 2) {
    const before = process.threadCpuUsage();
    context.run = run;
    try {
      return script.runInContext(context, { timeout }) as SchemaVerdict;
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before);
      const hadEnoughCpu = (user + system) / 1_000 >= TIME_LIMIT_MS * 0.8;
      if (!isTimeout(error) || hadEnoughCpu || timeout >= MAX_TIME_LIMIT_MS) throw error;
    } finally {
      delete context.run;
    }
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/** Keywords that can take longer than the size of the schema times the size of the value. */
const slowKeywords: ReadonlySet<string> = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties", "format", "uniqueItems"],
  ...["unevaluatedProperties", "unevaluatedItems"],
]);
const MAX_SMALL_PARTS = 300;

/** Small and simple schemas and values need no time limit, whose watchdog thread costs more than the check. */
function isSmall(json: unknown, slow?: ReadonlySet<string>): boolean {
  let parts = 0;
  try {
    JSON.stringify(json, (key, value: unknown) => {
      parts += 1 + (key.length + (typeof value === "string" ? value.length : 0)) / 100;
      if (parts > MAX_SMALL_PARTS || slow?.has(key)) throw new RangeError("not small");
      return value;
    });
    return true;
  } catch {
    return false;
  }
}

/** References are never fetched, and schemas are not validated themselves: it is enough that they compile. */
const options: Options = {
  strict: false,
  logger: false,
  validateSchema: false,
  meta: false,
  messages: false,
  inlineRefs: false,
  code: { optimize: false, process: limitErrors }, // compiles three times as fast without optimization
};

/** Makes a validator throw its errors when there are too many, because ajv has no limit. */
function limitErrors(code: string): string {
  return code.replaceAll(/\berrors(?:\+\+| = vErrors\.length);/g, `$&if(errors>${MAX_HELD_ERRORS})throw vErrors;`);
}

function compile(schema: JsonSchema, settings: Options): ValidateFunction {
  const { $schema: dialect } = schema;
  if (typeof dialect === "string") return compileAs(/draft-0[4-7]/.test(dialect) ? new Ajv(settings) : new Ajv2020(settings), schema);
  try {
    return compileAs(new Ajv2020(settings), schema);
  } catch (error) {
    // Many servers name no dialect and use draft-07.
    try {
      return compileAs(new Ajv(settings), schema);
    } catch {
      throw error;
    }
  }
}

function compileAs(ajv: Ajv, schema: JsonSchema): ValidateFunction {
  ajvFormats.default(ajv);
  const validate = ajv.compile(schema);
  if ("$async" in validate) throw new TypeError("it is asynchronous");
  return validate;
}

function describeFailure(error: unknown): string {
  return isTimeout(error) ? `checking takes longer than ${TIME_LIMIT_MS} ms` : (error as Error).message.slice(0, 200);
}
