import { hash } from "node:crypto";
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
/** On a busy machine, the limit on the clock doubles up to this until the validator has had its share of the processor. */
const MAX_CLOCK_MS = 1_600;
/** A schema that has failed this often is not tried again. */
const MAX_FAILURES = 3;
const MAX_ERRORS = 100;
/** Errors that one function of the validator may hold at a time, which bounds its memory. */
const MAX_HELD_ERRORS = 10_000;

/** By the hash of the schema's text, so that a server that sends its schemas again gets no new attempts. */
const failures = new Map<string, { readonly count: number; readonly reason: string }>();
const MAX_FAILED_CHECKS = 1_000;

type Check = (value: unknown, isLimited: boolean) => SchemaVerdict;

/**
 * Validates against one schema, whoever wrote it. Never throws. Deciding and explaining take at most about 100 ms of processor time each. Where explaining
 * would take longer or finds too much, the errors are those of the first problem.
 */
export function createJsonSchemaValidator(schema: JsonSchema): (value: unknown) => SchemaVerdict {
  const text = hashText(schema);
  if (text === null) return () => ({ status: "unusable", reason: "it is nested too deeply" });
  const isPlain = isSmall(schema, slowKeywords);
  const decide = createCheck(schema, { key: `${text} decide`, allErrors: false });
  const explain = createCheck(schema, { key: `${text} explain`, allErrors: true });
  return (value) => {
    const isLimited = !isPlain || !isSmall(value);
    const verdict = decide(value, isLimited);
    if (verdict.status !== "invalid") return verdict;
    const explained = explain(value, isLimited);
    return explained.status === "invalid" ? explained : verdict;
  };
}

function hashText(schema: JsonSchema): string | null {
  try {
    return hash("sha256", JSON.stringify(schema));
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
    validate.errors = null; // there may be very many
    return { status: "invalid", errors };
  }

  return (value, isLimited) => {
    const { count, reason } = failures.get(key) ?? { count: 0, reason: "" };
    if (count >= MAX_FAILURES) return { status: "unusable", reason };
    try {
      return isLimited ? runLimited(() => run(value)) : run(value);
    } catch (error) {
      if (Array.isArray(error)) return { status: "unusable", reason: `it finds more than ${MAX_HELD_ERRORS} errors` };
      validate = null; // it may have been interrupted anywhere
      const failure = { count: count + 1, reason: describeFailure(error) };
      failures.set(key, failure);
      if (failures.size > MAX_FAILED_CHECKS) failures.delete(failures.keys().next().value!);
      return { status: "unusable", reason: failure.reason };
    }
  };
}

/** The errors of alternatives come before the one that says that none fits. Without it, each would read as a problem of its own. */
function firstErrors(errors: ErrorObject[]): AjvError[] {
  if (errors.length <= MAX_ERRORS) return errors;
  const first = errors.slice(0, MAX_ERRORS - 1);
  const { instancePath: last } = first.at(-1)!;
  const rest = errors.slice(first.length);
  const conclusion = rest.find(({ keyword, instancePath }) => /^(?:any|one)Of$/.test(keyword) && last.startsWith(instancePath));
  return [...first, conclusion ?? rest[0]!];
}

const script = new Script("run()");
/** One for all; making it takes a millisecond. */
const context: { run?: () => SchemaVerdict } = createContext({});

/** The limit of `vm` is on the clock. Where the thread got little of the processor meanwhile, the machine was slow, not the schema. */
function runLimited(run: () => SchemaVerdict): SchemaVerdict {
  for (let timeout = TIME_LIMIT_MS; ; timeout *= 2) {
    const before = process.threadCpuUsage();
    context.run = run;
    try {
      return script.runInContext(context, { timeout }) as SchemaVerdict;
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before);
      const hadItsShare = (user + system) / 1_000 >= TIME_LIMIT_MS * 0.8;
      if (!isTimeout(error) || hadItsShare || timeout >= MAX_CLOCK_MS) throw error;
    } finally {
      delete context.run;
    }
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/** Keywords that can take more time than the size of the schema times the size of the value. */
const slowKeywords: ReadonlySet<string> = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties", "format", "uniqueItems"],
  ...["unevaluatedProperties", "unevaluatedItems"],
]);
const MAX_SMALL_PARTS = 300;

/** Most schemas and calls are small and simple: checking them takes less time than starting the thread that a time limit needs. */
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

/** Nothing is fetched, and what the meta-schema would say does not matter as long as the schema compiles. */
const options: Options = {
  strict: false,
  logger: false,
  validateSchema: false,
  meta: false,
  messages: false,
  inlineRefs: false,
  code: { optimize: false, process: withoutManyErrors }, // three times as fast to compile without optimization
};

/** Makes a validator throw its errors when it holds too many: ajv itself has no limit for them. */
function withoutManyErrors(code: string): string {
  return code.replaceAll(/\berrors(?:\+\+| = vErrors\.length);/g, `$&if(errors>${MAX_HELD_ERRORS})throw vErrors;`);
}

function compile(schema: JsonSchema, settings: Options): ValidateFunction {
  const { $schema: dialect } = schema;
  if (typeof dialect === "string") return compileAs(/draft-0[4-7]/.test(dialect) ? new Ajv(settings) : new Ajv2020(settings), schema);
  try {
    return compileAs(new Ajv2020(settings), schema);
  } catch (error) {
    // Many servers name no dialect and mean the older one.
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
