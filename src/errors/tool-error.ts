import { z } from "zod";
import { clipMiddle, ellipsize } from "../text/clip-text.ts";
import { parseJson, toAsciiJson } from "../text/json.ts";
import { errorKinds, errorTable, lookUpError, type ToolErrorCode, type ErrorCode, type ErrorKind } from "./error-table.ts";
import type { ForeignToolError } from "./foreign-tool-error.ts";

const optionalText = z.string().optional();
const position = z.int().nonnegative().optional();

/** One problem. `path`, `issue` and `received_type` are always present. */
const detailSchema = z.strictObject({
  /** Path in the call's arguments, such as `postProcessingContract.inputAliases[0]`. Empty if the problem concerns the whole call. */
  path: z.string(),
  issue: z.string(),
  received_type: z.string(),
  /** The code of this problem, if the tool error reports several different ones. */
  error_code: optionalText,
  /** Position in `code`, starting at 1. */
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
 * The v1 error object: the only form in which a model reads an error. A repair that the agent loop can enforce is not part of it. The repair is a field
 * of the tool result, because a successful result can have one too.
 */
export const toolErrorSchema = z
  .strictObject({
    error_kind: z.enum(Object.keys(errorKinds) as ErrorKind[]),
    tool: z.string(),
    summary: z.string().min(1),
    details: z.array(detailSchema),
    hints: z.array(z.string()),
    /** Arguments that would be accepted, or code snippets. */
    examples: z.array(z.unknown()),
    error_code: z.string().min(1),
    retryable: z.boolean(),
    _envelope_version: z.literal(1),
    _meta: metaSchema.optional(),
  })
  .refine(({ error_kind, error_code }) => isCodeOfKind(error_code, error_kind), {
    path: ["error_code"],
    error: "does not belong to this error_kind",
  });

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
  /** Overrides the table, for example when a backend says whether a retry makes sense. */
  readonly retryable?: boolean;
  readonly meta?: ToolErrorMeta;
}

/** A model reads the whole error, so every text has a limit. A shortened text ends with an ellipsis. */
const maxLength = { summary: 2_000, text: 1_000, longText: 4_096, details: 40, hints: 12 } as const;

/** Creates a tool error with the kind and the default for `retryable` from the error table. Shortens texts and lists that are too long. */
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
    summary: ellipsize(summary, maxLength.summary),
    details: details.slice(0, maxLength.details).map(clipDetail),
    hints: toHints(hints, details.length).map((hint) => ellipsize(hint, maxLength.text)),
    examples: [...examples],
    error_code: code,
    retryable: retryable ?? entry.retryable,
    _envelope_version: 1,
    ...(meta === undefined ? {} : { _meta: meta }),
  };
}

/** Removes duplicates and limits the number of hints. Adds a hint if details or hints were left out. */
function toHints(given: readonly string[], details: number): string[] {
  const notListed = details > maxLength.details ? [`Only the first ${maxLength.details} of ${details} problems are listed.`] : [];
  const hints = [...new Set([...notListed, ...given])];
  const rest = hints.length - maxLength.hints;
  return rest <= 0 ? hints : [...hints.slice(0, maxLength.hints - 1), `${rest + 1} more hints were left out.`];
}

/** Parses a tool error from a value or its JSON text. Returns null for anything else, including v1 errors of other servers. */
export function parseToolError(value: unknown): ToolError | null {
  const parsed = toolErrorSchema.safeParse(typeof value === "string" ? parseJson(value) : value);
  return parsed.success ? parsed.data : null;
}

/** Returns the JSON type of a value, or `missing` for undefined. */
export function receivedType(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

export function serializeToolError(toolError: ToolError | ForeignToolError): string {
  return toAsciiJson(toolError);
}

function isCodeOfKind(code: string, kind: ErrorKind): boolean {
  if (/^UPSTREAM_HTTP_[1-5]\d\d$/.test(code) && code !== "UPSTREAM_HTTP_429") return kind === "upstream_http";
  return code !== "UPSTREAM_HTTP_STATUS" && Object.hasOwn(errorTable, code) && lookUpError(code as ErrorCode).kind === kind;
}

function clipDetail(detail: ToolErrorDetail): ToolErrorDetail {
  const fields = Object.entries(detail).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    if (name === "traceback") return [name, clipMiddle(value, maxLength.longText - 3, () => "\n…\n")]; // the start has the location, the end has the exception
    return [name, ellipsize(value, name === "upstream_details" ? maxLength.longText : maxLength.text)];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as ToolErrorDetail;
}
