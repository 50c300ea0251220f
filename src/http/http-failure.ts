import { SluiceError } from "../errors/sluice-error.ts";
import type { HttpErrorBody } from "../protocol/http-error.ts";

export interface HttpFailureFacts {
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 411 | 413 | 415 | 421 | 422 | 429 | 500 | 503;
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

/** What a client is told instead of what it asked for. Nothing of what it asked was done, unless the message says so. */
export class HttpFailure extends SluiceError {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor({ status, retryAfterSeconds, ...facts }: HttpFailureFacts) {
    super(facts);
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Errors of other modules that are the client's affair, with the status that says whose. */
const statuses: Readonly<Record<string, number>> = {
  UPLOAD_TOO_LARGE: 413,
  UPLOAD_TYPE_UNKNOWN: 415,
  UPLOAD_NOT_AS_NAMED: 422,
  UNKNOWN_ALIAS: 404,
  PARQUET_NOT_MADE: 422,
  CSV_NOT_MADE: 422,
  NO_TABLE: 422,
  DATA_UNREADABLE: 422,
  DATA_FILE_GONE: 410,
  EVIDENCE_FULL: 413,
  EVIDENCE_MISSING: 410,
  SANDBOX_QUEUE_TIMEOUT: 429,
};

/** The one place where errors become answers. What nobody foresaw is told by its kind alone; the log has the rest. */
export function toFailureResponse(error: unknown): Response {
  const { status, body, retryAfterSeconds } = describe(error);
  const headers = new Headers({ "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  if (status === 401) headers.set("www-authenticate", 'Bearer realm="sluice"');
  return new Response(`${JSON.stringify(body)}\n`, { status, headers });
}

function describe(error: unknown): { status: number; body: HttpErrorBody; retryAfterSeconds?: number | undefined } {
  if (isOfDatabase(error)) return { status: 503, body: noHistory(error), retryAfterSeconds: 10 };
  if (!(error instanceof SluiceError)) return { status: 500, body: unexpected() };
  const { code, message, hint, details } = error;
  const known = error instanceof HttpFailure ? error.status : statuses[code];
  const status = known ?? (code === "NO_SANDBOX" || code === "SNAPSHOT_MISSING" || code.endsWith("UNAVAILABLE") ? 503 : 500);
  const retryAfterSeconds = error instanceof HttpFailure ? error.retryAfterSeconds : status === 429 ? 5 : undefined;
  return {
    status,
    retryAfterSeconds,
    body: { error: { code, message, ...(hint === undefined ? {} : { hint }), ...(Object.keys(details).length === 0 ? {} : { details }) } },
  };
}

function isOfDatabase(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}

/** What SQLite says of itself: that it is full, locked or read-only. */
function noHistory({ message }: Error): HttpErrorBody {
  return {
    error: {
      code: "HISTORY_UNAVAILABLE",
      message: `The history cannot be used: ${message}.`,
      hint: "Free space on the server, or look what holds its file; then try again.",
    },
  };
}

function unexpected(): HttpErrorBody {
  return {
    error: {
      code: "INTERNAL_ERROR",
      message: "The server failed in a way that was not foreseen.",
      hint: "Its log says how; try again, or report it.",
    },
  };
}
