import { type ErrorCode, lookUpError } from "../../errors/error-table.ts";
import { type ErrorFacts, SluiceError } from "../../errors/sluice-error.ts";
import type { ToolError } from "../../errors/tool-error.ts";
import type { HttpErrorBody } from "../../protocol/http-error.ts";

/** A request that is answered with an error. Nothing that it asked for was done, unless the message says so. */
export class HttpFailure extends SluiceError {
  readonly retryAfterSeconds: number | undefined;

  constructor({ retryAfterSeconds, ...facts }: ErrorFacts & { readonly retryAfterSeconds?: number }) {
    super(facts);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function toHttpFailure(toolError: ToolError): HttpFailure {
  const { error_code: code, summary: message, hints } = toolError;
  return new HttpFailure({
    code: code as ErrorCode,
    message,
    hint: hints.length === 0 ? undefined : hints.join(" "),
    details: { toolError },
    retryAfterSeconds: code === "QUEUE_FULL" ? 5 : undefined,
  });
}

/** The only place where errors become responses. An unexpected error is reported without details; these are in the log. */
export function toFailureResponse(error: unknown): Response {
  const { status, body, retryAfterSeconds } = describe(error);
  const headers = new Headers({ "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  if (status === 401) headers.set("www-authenticate", 'Bearer realm="sluice"');
  if (status === 405) headers.set("allow", "GET");
  return new Response(`${JSON.stringify(body)}\n`, { status, headers });
}

function describe(error: unknown): { status: number; body: HttpErrorBody; retryAfterSeconds?: number | undefined } {
  if (isSqliteError(error)) {
    const message = `The history cannot be used: ${error.message}.`;
    return { ...toErrorBody({ code: "HISTORY_UNAVAILABLE", message }), retryAfterSeconds: 10 };
  }
  if (!(error instanceof SluiceError)) {
    const message = "Unexpected error in the server.";
    return toErrorBody({ code: "INTERNAL_ERROR", message, hint: "See the server log. Try again, or report it." });
  }
  const described = toErrorBody(error);
  const retryAfterSeconds = error instanceof HttpFailure ? error.retryAfterSeconds : described.status === 429 ? 5 : undefined;
  return { ...described, retryAfterSeconds };
}

function toErrorBody({ code, message, hint = lookUpError(code).hint, details = {} }: ErrorFacts): { status: number; body: HttpErrorBody } {
  return {
    status: lookUpError(code).status,
    body: { error: { code, message, hint, details: Object.keys(details).length === 0 ? undefined : details } },
  };
}

/** The database is full, locked or read-only; its message says which. */
function isSqliteError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}
