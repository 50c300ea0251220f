/**
 * A failure of the ads server: a v1 error object, as compact JSON text in a result with `isError`. The kinds and codes are specific to this server
 * (`ads_api_http`, `ADS_API_HTTP_503`). Clients pass them on without knowing them.
 */
export interface AdsFailure {
  readonly kind: "ads_api_http" | "rate_limited" | "precondition_failed" | "auth_error" | "mcp_input_validation";
  readonly code: string;
  readonly summary: string;
  readonly retryable?: boolean;
  readonly hints?: readonly string[];
  readonly details?: readonly Record<string, unknown>[];
  readonly meta?: Record<string, unknown>;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  [key: string]: unknown;
}

export function toFailedResult(
  tool: string,
  { kind, code, summary, retryable = false, hints = [], details = [], meta }: AdsFailure,
): ToolResult {
  const toolError = {
    error_kind: kind,
    tool,
    summary,
    details,
    hints,
    examples: [],
    error_code: code,
    retryable,
    _envelope_version: 1,
    ...(meta === undefined ? {} : { _meta: meta }),
  };
  return { content: [{ type: "text", text: JSON.stringify(toolError) }], isError: true };
}

/** An HTTP error of the advertising API behind the server. */
export function httpFailure(status: number, message: string, requestId: string): AdsFailure {
  const details = [
    { path: "", issue: message, received_type: "object", upstream_code: String(status), upstream_message: message, request_id: requestId },
  ];
  const isRetryable = status === 408 || status >= 500;
  return {
    kind: "ads_api_http",
    code: `ADS_API_HTTP_${status}`,
    summary: `The advertising API answered with HTTP ${status}: ${message}`,
    retryable: isRetryable,
    details,
  };
}

export function rateLimited(retryAfterSeconds: number): AdsFailure {
  return {
    kind: "rate_limited",
    code: "ADS_API_HTTP_429",
    summary: "The advertising API limits the rate of calls.",
    retryable: true,
    hints: [`Wait ${retryAfterSeconds} s, then make the same call again.`],
    meta: { retry_after_seconds: retryAfterSeconds, rate_limit: { limit: 1, remaining: 0 } },
  };
}

/** Returns a failure unchanged, and otherwise the result of `then`. */
export function unlessFailure<Value extends object>(value: Value | AdsFailure, then: (value: Value) => object): object {
  return isFailure(value) ? value : then(value);
}

export function isFailure(value: object): value is AdsFailure {
  return "kind" in value && "code" in value && "summary" in value;
}

/** Checks a period. Returns null if it is valid. */
export function checkPeriod({ start_date, end_date }: { start_date: string; end_date: string }): AdsFailure | null {
  const days = (Date.parse(end_date) - Date.parse(start_date)) / 86_400_000;
  if (days >= 0 && days <= 92) return null;
  const issue = Number.isNaN(days) ? "is not a date" : days < 0 ? "is before start_date" : "is more than 92 days after start_date";
  return {
    kind: "mcp_input_validation",
    code: "INPUT_VALIDATION_FAILED",
    summary: `end_date ${issue}.`,
    details: [{ path: "end_date", issue, received_type: "string" }],
    hints: ["Ask for at most 92 days at a time."],
  };
}
