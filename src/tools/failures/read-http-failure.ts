import { isRecord } from "../../errors/is-record.ts";
import { retryAfterSeconds } from "./retry-after.ts";

/** What is known of an HTTP answer that was an error, wherever it stood in what reached us. */
export interface HttpFailure {
  readonly status: number;
  readonly code: string | null;
  readonly message: string | null;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  /** The body, as text. */
  readonly body: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

const MAX_RECORDS = 40;
const MAX_BODY_CHARACTERS = 65_536;

const statusNames = ["status", "statusCode", "status_code", "httpStatus", "http_status", "httpStatusCode"];
const below = ["error", "response", "data", "body", "text", "cause", "errors", "details", "_meta"];
const requestIdNames = ["requestId", "request_id", "requestID", "x-amzn-requestid"];
const requestIdHeaders = ["x-request-id", "request-id", "x-amzn-requestid", "x-amz-request-id", "amz-request-id", "x-correlation-id"];
const retryNames = ["retry_after_seconds", "retryAfterSeconds", "retryAfter", "retry_after", "retry-after"];

/** From an error, an MCP result's structured content, or anything else; null when it names no HTTP status of an error. */
export function readHttpFailure(value: unknown, now: number): HttpFailure | null {
  const records = recordsIn(value);
  const status = firstOf(records, statusOf);
  if (status === null) return null;
  const headers = records.flatMap(({ headers }) => (isRecord(headers) ? [headers] : []));
  const named = (names: readonly string[]): unknown => firstOf(records, (record) => firstOf(names, (name) => record[name] ?? null));
  const header = (name: string): string | null => firstOf(headers, (one) => readHeader(one, name));
  const milliseconds = named(["retry_after_ms", "retryAfterMs"]);
  return {
    status,
    code: firstOf(records, codeOf),
    message: firstOf(records.toReversed(), messageOf),
    requestId: firstOf(requestIdHeaders, header) ?? toText(named(requestIdNames)),
    retryAfterSeconds:
      retryAfterSeconds(header("retry-after"), now) ??
      retryAfterSeconds(named(retryNames), now) ??
      (typeof milliseconds === "number" ? retryAfterSeconds(milliseconds / 1000, now) : null),
    body: firstOf(records, bodyOf),
  };
}

/** From words: `HTTP 503`, `status code 404`, `Client error '404 Not Found'`. Other numbers in a text are not statuses. */
export function readHttpStatusInText(text: string, now: number): HttpFailure | null {
  const start = text.slice(0, 2_000);
  const found =
    /\bHTTP(?:\/\d(?:\.\d)?)?(?: (?:status|error|code|response))*[ :=(]{1,3}([345]\d\d)\b/i.exec(start) ??
    /\bstatus[ _]?code[ :=(]{1,3}([345]\d\d)\b/i.exec(start) ??
    /\b(?:Client|Server|Redirect) error '([345]\d\d) /.exec(start);
  if (found === null) return null;
  const wait = /\bretry[ -]after[ :=]{1,3}(\d{1,6}(?:\.\d{1,3})?)\b/i.exec(start)?.[1];
  const message = text.trim();
  return { status: Number(found[1]), code: null, message, requestId: null, retryAfterSeconds: retryAfterSeconds(wait, now), body: null };
}

/** The value and what is nested in it in the usual places, from the outside in. */
function recordsIn(value: unknown): Fields[] {
  const records: Fields[] = [];
  const open: unknown[] = [value];
  for (let index = 0; index < open.length && records.length < MAX_RECORDS; index += 1) {
    const next = fromJson(open[index]);
    if (Array.isArray(next)) open.push(...(next.slice(0, 5) as unknown[]));
    if (!isRecord(next) || records.includes(next)) continue;
    records.push(next);
    for (const name of below) if (next[name] !== undefined) open.push(next[name]);
  }
  return records;
}

function fromJson(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[{[]/.test(value) || value.length > MAX_BODY_CHARACTERS) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function statusOf(record: Fields): number | null {
  const candidates = [...statusNames.map((name) => record[name]), record["code"]];
  return firstOf(candidates, (candidate) => {
    const status = typeof candidate === "string" && /^\d{3}$/.test(candidate) ? Number(candidate) : candidate;
    return typeof status === "number" && Number.isInteger(status) && status >= 300 && status <= 599 ? status : null;
  });
}

function codeOf(record: Fields): string | null {
  const { code, errorCode, error_code: snake, error, type } = record;
  // A JavaScript error's own `code` says how the transport failed, not what the backend said.
  if (record instanceof Error) return null;
  return firstOf([code, errorCode, snake, error, type], (one) => (typeof one === "string" && /^[\w.:-]{1,100}$/.test(one) ? one : null));
}

/** What the MCP SDK puts before the body of an answer, which may be empty. */
const ofTransport = /^Error POSTing to endpoint:?\s*/;

function messageOf(record: Fields): string | null {
  return firstOf(["message", "error_description", "detail", "title", "error", "reason"], (name) => {
    const said = record[name];
    const text = typeof said === "string" ? said.replace(ofTransport, "") : "";
    return text.trim() !== "" && !/^\s*[{[]/.test(text) ? text : null;
  });
}

function bodyOf(record: Fields): string | null {
  const body = record["text"] ?? record["body"] ?? record["responseBody"];
  if (typeof body === "string") return body === "" ? null : body.slice(0, MAX_BODY_CHARACTERS);
  return isRecord(body) && !(Symbol.asyncIterator in body) ? toJson(body) : null;
}

function toJson(value: unknown): string | null {
  try {
    return JSON.stringify(value).slice(0, MAX_BODY_CHARACTERS);
  } catch {
    return null;
  }
}

function readHeader(headers: Fields, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return toText(Array.isArray(found) ? found[0] : found);
}

function toText(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, 200) : typeof value === "number" ? String(value) : null;
}

function firstOf<Item, Value>(items: readonly Item[], read: (item: Item) => Value | null): Value | null {
  for (const item of items) {
    const value = read(item);
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
