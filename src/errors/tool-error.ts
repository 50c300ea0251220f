import { z } from "zod";
import { clipMiddle, ellipsize } from "../text/clip-text.ts";
import { parseJson, toAsciiJson } from "../text/json.ts";
import { errorKinds, errorTable, lookUpError, type ToolErrorCode, type ErrorCode, type ErrorKind } from "./error-table.ts";
import type { ForeignToolError } from "./foreign-tool-error.ts";

const optionalText = z.string().optional();
const position = z.int().nonnegative().optional();

/** One thing that is wrong. The three first are always there; the rest where it is known. */
const detailSchema = z.strictObject({
  /** Into the call's arguments: `postProcessingContract.inputAliases[0]`. Empty for the call as a whole. */
  path: z.string(),
  issue: z.string(),
  received_type: z.string(),
  /** When one envelope reports different things: the code of this one. */
  error_code: optionalText,
  /** In `code`, counted from 1. */
  line: position,
  column: position,
  traceback: optionalText,
  upstream_code: optionalText,
  upstream_message: optionalText,
  request_id: optionalText,
  upstream_details: optionalText,
});

const metaSchema = z.strictObject({
  normalized: z.array(z.unknown()).optional(),
  rate_limit: z.record(z.string(), z.unknown()).optional(),
  warnings: z.array(z.string()).optional(),
  retry_after_seconds: z.number().nonnegative().optional(),
});

/**
 * The v1 error object: the only form in which a model reads an error. A repair that a loop can force is not part of it: it stands beside it in
 * the tool's answer, because an answer that succeeded can need one too.
 */
export const toolErrorSchema = z
  .strictObject({
    error_kind: z.enum(Object.keys(errorKinds) as ErrorKind[]),
    tool: z.string(),
    summary: z.string().min(1),
    details: z.array(detailSchema),
    hints: z.array(z.string()),
    /** Arguments of calls that would be accepted, or snippets of code. */
    examples: z.array(z.unknown()),
    error_code: z.string().min(1),
    retryable: z.boolean(),
    _envelope_version: z.literal(1),
    _meta: metaSchema.optional(),
  })
  .refine(({ error_kind, error_code }) => belongs(error_code, error_kind), { path: ["error_code"], error: "is not a code of this kind" });

export type ToolErrorDetail = z.infer<typeof detailSchema>;
export type ToolErrorMeta = z.infer<typeof metaSchema>;
export type ToolError = z.infer<typeof toolErrorSchema>;

export interface ToolErrorFacts {
  readonly code: ToolErrorCode;
  readonly tool: string;
  readonly summary: string;
  readonly details?: readonly ToolErrorDetail[];
  readonly hints?: readonly string[];
  readonly examples?: readonly unknown[];
  /** Overrides the table, for instance when a backend says so. */
  readonly retryable?: boolean;
  readonly meta?: ToolErrorMeta;
}

/** A model reads it whole, so each text has a budget; what is cut ends in an ellipsis. */
const budget = { summary: 2_000, text: 1_000, longText: 4_096, details: 40, hints: 12 } as const;

export function createToolError({
  code,
  tool,
  summary,
  details = [],
  hints = [],
  examples = [],
  retryable,
  meta,
}: ToolErrorFacts): ToolError {
  const entry = lookUpError(code);
  return {
    error_kind: entry.kind!,
    tool: ellipsize(tool, 200),
    summary: ellipsize(summary, budget.summary),
    details: details.slice(0, budget.details).map(clipDetail),
    hints: toHints(hints, details.length).map((hint) => ellipsize(hint, budget.text)),
    examples: [...examples],
    error_code: code,
    retryable: retryable ?? entry.retryable,
    _envelope_version: 1,
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

/** Each once; what there is no room for, of them and of the details, is counted. */
function toHints(given: readonly string[], details: number): string[] {
  const notListed = details > budget.details ? [`Only the first ${budget.details} of ${details} problems are listed.`] : [];
  const hints = [...new Set([...notListed, ...given])];
  const rest = hints.length - budget.hints;
  return rest <= 0 ? hints : [...hints.slice(0, budget.hints - 1), `${rest + 1} more hints were left out.`];
}

/** From a value or its JSON text; null when it is no v1 envelope of ours. */
export function parseToolError(value: unknown): ToolError | null {
  const parsed = toolErrorSchema.safeParse(typeof value === "string" ? parseJson(value) : value);
  return parsed.success ? parsed.data : null;
}

export function serializeToolError(toolError: ToolError | ForeignToolError): string {
  return toAsciiJson(toolError);
}

function belongs(code: string, kind: ErrorKind): boolean {
  if (/^UPSTREAM_HTTP_[1-5]\d\d$/.test(code) && code !== "UPSTREAM_HTTP_429") return kind === "upstream_http";
  return code !== "UPSTREAM_HTTP_STATUS" && Object.hasOwn(errorTable, code) && lookUpError(code as ErrorCode).kind === kind;
}

function clipDetail(detail: ToolErrorDetail): ToolErrorDetail {
  const texts = Object.entries(detail).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    if (name === "traceback") return [name, clipMiddle(value, budget.longText - 3, () => "\n…\n")]; // where is at its start, what at its end
    return [name, ellipsize(value, name === "upstream_details" ? budget.longText : budget.text)];
  });
  return Object.fromEntries(texts.filter(([, value]) => value !== undefined)) as ToolErrorDetail;
}
