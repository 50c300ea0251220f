import type { ToolError } from "../../errors/tool-error.ts";
import { type ErrorCode, lookUpError } from "../../errors/error-table.ts";
import { SluiceError, type ErrorFacts } from "../../errors/sluice-error.ts";
import type { HttpErrorBody } from "../../protocol/http-error.ts";

/** What a client is told instead of what it asked for. Nothing of what it asked was done, unless the message says so. */
export class HttpFailure extends SluiceError {
  readonly retryAfterSeconds: number | undefined;

  constructor({ retryAfterSeconds, ...facts }: ErrorFacts & { readonly retryAfterSeconds?: number }) {
    super(facts);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** What a module said in an error envelope. */
export function toHttpFailure(toolError: ToolError): HttpFailure {
  const { error_code: code, summary: message, hints } = toolError;
  return new HttpFailure({
    code: code as ErrorCode,
    message,
    ...(hints.length === 0 ? {} : { hint: hints.join(" ") }),
    details: { toolError },
    ...(code === "QUEUE_FULL" ? { retryAfterSeconds: 5 } : {}),
  });
}

/** The one place where errors become answers. What nobody foresaw is told by its kind alone; the log has the rest. */
export function toFailureResponse(error: unknown): Response {
  const { status, body, retryAfterSeconds } = describe(error);
  const headers = new Headers({ "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  if (status === 401) headers.set("www-authenticate", 'Bearer realm="sluice"');
  if (status === 405) headers.set("allow", "GET");
  return new Response(`${JSON.stringify(body)}\n`, { status, headers });
}

function describe(error: unknown): { status: number; body: HttpErrorBody; retryAfterSeconds?: number | undefined } {
  if (isOfDatabase(error)) {
    const message = `The history cannot be used: ${error.message}.`;
    return { ...toAnswer({ code: "HISTORY_UNAVAILABLE", message }), retryAfterSeconds: 10 };
  }
  if (!(error instanceof SluiceError)) {
    const message = "The server failed in a way that was not foreseen.";
    return toAnswer({ code: "INTERNAL_ERROR", message, hint: "Its log says how; try again, or report it." });
  }
  const answer = toAnswer(error);
  return { ...answer, retryAfterSeconds: error instanceof HttpFailure ? error.retryAfterSeconds : answer.status === 429 ? 5 : undefined };
}

function toAnswer({ code, message, hint = lookUpError(code).hint, details = {} }: ErrorFacts): { status: number; body: HttpErrorBody } {
  return {
    status: lookUpError(code).status,
    body: { error: { code, message, ...(hint === undefined ? {} : { hint }), ...(Object.keys(details).length === 0 ? {} : { details }) } },
  };
}

/** SQLite says of itself that it is full, locked or read-only. */
function isOfDatabase(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}
