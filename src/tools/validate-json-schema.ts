import { runInNewContext } from "node:vm";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import type { AjvError } from "../errors/schema-problems.ts";
import type { JsonSchema } from "./contract.ts";

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

/** Validates against one schema, whoever wrote it. Never throws. It takes at most about 100 ms of processor time at a time. */
export function createJsonSchemaValidator(schema: JsonSchema): (value: unknown) => SchemaVerdict {
  const isPlain = isPlainSchema(schema);
  let validate: ValidateFunction | null = null;
  let failures = 0;
  let reason = "";

  function run(value: unknown): SchemaVerdict {
    validate ??= compile(schema);
    if (validate(value)) return { status: "valid" };
    return { status: "invalid", errors: (validate.errors ?? []).slice(0, MAX_ERRORS) as AjvError[] };
  }

  return (value) => {
    if (failures >= MAX_FAILURES) return { status: "unusable", reason };
    try {
      return isPlain ? run(value) : runLimited(() => run(value));
    } catch (error) {
      validate = null; // it may have been interrupted anywhere
      failures += 1;
      reason = describeFailure(error);
      return { status: "unusable", reason };
    }
  };
}

/** The limit of `vm` is on the clock. Where the thread got little of the processor meanwhile, the machine was slow, not the schema. */
function runLimited(run: () => SchemaVerdict): SchemaVerdict {
  for (let timeout = TIME_LIMIT_MS; ; timeout *= 2) {
    const before = process.threadCpuUsage();
    try {
      return runInNewContext("run()", { run }, { timeout }) as SchemaVerdict;
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before);
      const hadItsShare = (user + system) / 1_000 >= TIME_LIMIT_MS * 0.8;
      if (!isTimeout(error) || hadItsShare || timeout >= MAX_CLOCK_MS) throw error;
    }
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/** Keywords that can take more than linear time. */
const slowKeywords: ReadonlySet<string> = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties", "format", "uniqueItems"],
  ...["unevaluatedProperties", "unevaluatedItems"],
]);
const MAX_PLAIN_VALUES = 1_000;

/** Most schemas are small and simple; a time limit would cost each call a thread. */
function isPlainSchema(schema: JsonSchema): boolean {
  let values = 0;
  try {
    JSON.stringify(schema, (key, value: unknown) => {
      values += 1;
      if (values > MAX_PLAIN_VALUES || slowKeywords.has(key)) throw new RangeError("not plain");
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
  allErrors: true,
  logger: false,
  validateSchema: false,
  meta: false,
  inlineRefs: false,
  code: { optimize: false }, // three times as fast to compile
};

function compile(schema: JsonSchema): ValidateFunction {
  const { $schema: dialect } = schema;
  if (typeof dialect === "string") return compileAs(/draft-0[4-7]/.test(dialect) ? new Ajv(options) : new Ajv2020(options), schema);
  try {
    return compileAs(new Ajv2020(options), schema);
  } catch (error) {
    // Many servers name no dialect and mean the older one.
    try {
      return compileAs(new Ajv(options), schema);
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
