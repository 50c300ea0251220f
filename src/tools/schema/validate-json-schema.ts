import { Ajv, type AnySchema, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";

/** One error of the validator, as data that can cross to another thread. */
export interface SchemaIssue {
  readonly keyword: string;
  /** A JSON pointer into the value. */
  readonly pointer: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Of `anyOf` and `oneOf`: how many alternatives there are, and how many of them are more than `null`. */
  readonly alternatives?: { readonly all: number; readonly notNull: number } | undefined;
}

export type SchemaVerdict =
  | { readonly status: "valid" }
  | { readonly status: "invalid"; readonly issues: readonly SchemaIssue[] }
  /** The schema cannot be compiled, or made the validator fail. */
  | { readonly status: "unusable"; readonly reason: string };

/** Validates against one schema, whoever wrote it. Never throws. */
export interface JsonSchemaValidator {
  validate(value: unknown, options?: { readonly firstIssueOnly?: boolean }): SchemaVerdict;
}

const MAX_ISSUES = 60;
const MAX_ALLOWED_VALUES = 50;

export function createJsonSchemaValidator(schema: AnySchema): JsonSchemaValidator {
  let decide: ValidateFunction | string | null = null;
  let explain: ValidateFunction | string | null = null;
  return {
    validate(value, { firstIssueOnly = false } = {}) {
      decide ??= compile(schema, false);
      const verdict = apply(decide, value);
      if (verdict.status !== "invalid" || firstIssueOnly) return verdict;
      explain ??= compile(schema, true);
      const explained = apply(explain, value);
      return explained.status === "invalid" ? explained : verdict;
    },
  };
}

/** The schema is a stranger's: nothing is fetched, and what the meta-schema would say does not matter as long as it compiles. */
const options: Options = { strict: false, verbose: true, logger: false, validateSchema: false, meta: false, inlineRefs: false };

function compile(schema: AnySchema, allErrors: boolean): ValidateFunction | string {
  const dialect = typeof schema === "object" && typeof schema["$schema"] === "string" ? schema["$schema"] : null;
  const isOld = dialect !== null && /draft-0[4-7]/.test(dialect);
  const first = compileAs(isOld ? "draft-07" : "2020-12", schema, allErrors);
  // Many servers say no dialect and mean the older one.
  return typeof first === "string" && dialect === null ? orFirst(compileAs("draft-07", schema, allErrors), first) : first;
}

function orFirst(second: ValidateFunction | string, first: string): ValidateFunction | string {
  return typeof second === "string" ? first : second;
}

function compileAs(dialect: "draft-07" | "2020-12", schema: AnySchema, allErrors: boolean): ValidateFunction | string {
  try {
    const ajv = dialect === "draft-07" ? new Ajv({ ...options, allErrors }) : new Ajv2020({ ...options, allErrors });
    ajvFormats.default(ajv);
    const validate = ajv.compile(schema);
    return "$async" in validate ? "it is asynchronous" : validate;
  } catch (error) {
    return messageOf(error);
  }
}

function apply(validate: ValidateFunction | string, value: unknown): SchemaVerdict {
  if (typeof validate === "string") return { status: "unusable", reason: validate };
  try {
    if (validate(value)) return { status: "valid" };
    return { status: "invalid", issues: (validate.errors ?? []).slice(0, MAX_ISSUES).map(toIssue) };
  } catch (error) {
    return { status: "unusable", reason: messageOf(error) };
  }
}

function toIssue({ keyword, instancePath, params, schema }: ErrorObject): SchemaIssue {
  const kept = Object.entries(params as Record<string, unknown>).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.slice(0, MAX_ALLOWED_VALUES) : value,
  ]);
  return {
    keyword,
    pointer: instancePath,
    params: Object.fromEntries(kept) as Record<string, unknown>,
    ...(Array.isArray(schema) && (keyword === "anyOf" || keyword === "oneOf") ? { alternatives: countAlternatives(schema) } : {}),
  };
}

function countAlternatives(branches: readonly unknown[]): { all: number; notNull: number } {
  const isNull = (branch: unknown): boolean => typeof branch === "object" && branch !== null && "type" in branch && branch.type === "null";
  return { all: branches.length, notNull: branches.filter((branch) => !isNull(branch)).length };
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}
