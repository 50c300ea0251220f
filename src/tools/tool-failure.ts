import { STATUS_CODES } from "node:http";
import type { ToolErrorCode } from "../errors/error-table.ts";
import { createToolError, type ToolError, receivedType } from "../errors/tool-error.ts";
import { findToolErrorInText, parseForeignToolError, type ForeignToolError } from "../errors/foreign-tool-error.ts";
import { isRecord, parseJson } from "../text/json.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { ToolAnswer } from "./backend-tool.ts";
import { isCredentialName, withoutSecrets } from "./find-credentials.ts";

/** The failure of a call. A `plain` one has too little information for a tool error; in Python it is RuntimeError("type: message"). */
export type ToolFailure =
  | { readonly kind: "toolError"; readonly toolError: ToolError | ForeignToolError }
  | { readonly kind: "plain"; readonly type: string; readonly message: string };

export interface FailureContext {
  /** The name by which it was called. */
  readonly tool: string;
  /** Milliseconds since 1970, to interpret dates in `Retry-After`. */
  readonly now?: (() => number) | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const MAX_TEXT_CHARACTERS = 262_144;
const MAX_MESSAGE_CHARACTERS = 4_000;

/** The failure of an answer with `isError`; null for every other answer. */
export function failureOfAnswer({ output, as }: ToolAnswer, context: FailureContext): ToolFailure | null {
  if (as !== "mcp" || !isRecord(output) || output["isError"] !== true) return null;
  const structured = output["structuredContent"];
  const text = joinTexts(output["content"]);
  const records = [structured, text].flatMap(recordsIn);
  const passedOn = toolErrorIn(records) ?? findToolErrorInText(text);
  if (passedOn !== null) return asFailure(passedOn);
  const http = httpFailureIn(records, context) ?? statusInText(text, context);
  if (http !== null) return asFailure(toHttpToolError(context.tool, http, structured ?? text));
  return { kind: "plain", type: "ToolError", message: toMessage(text || toJsonText(structured) || "The tool failed without a message.") };
}

/** The failure of a call that rejected with an error of the MCP client or of a local function. Not for aborts by the caller. */
export function failureOfError(error: unknown, context: FailureContext): ToolFailure {
  const records = recordsIn(error);
  const passedOn = toolErrorIn(records);
  if (passedOn !== null) return asFailure(passedOn);
  const http = httpFailureIn(records, context);
  if (http !== null) return asFailure(toHttpToolError(context.tool, http, error instanceof Error ? http.body : error));
  const connection = connectionFailureIn(records);
  if (connection !== null) return asFailure(toConnectionError(context.tool, connection, error));
  const type = error instanceof Error && /^[\w.]{1,100}$/.test(error.name) ? error.name : "Error";
  return { kind: "plain", type, message: toMessage(messageOf(error)) };
}

export function failureOfTimeout(tool: string, timeoutMs: number): ToolFailure {
  return asFailure(
    createToolError({
      code: "UPSTREAM_HTTP_TIMEOUT",
      tool,
      summary: `${tool} did not answer within ${timeoutMs / 1000} s.`,
      details: [{ path: "", issue: `No answer within ${timeoutMs / 1000} s.`, received_type: "missing" }],
      hints: ["The call may have taken effect. Ask for less at once, or check the state before calling again."],
    }),
  );
}

/** The failure with a tool error: of the backend, or of a check that refused the call. */
export function asFailure(toolError: ToolError | ForeignToolError): ToolFailure {
  return { kind: "toolError", toolError };
}

/** Shorter values would match unrelated text. */
const MIN_SECRET_CHARACTERS = 8;

/** Removes credentials that were sent in headers from a failure, because the error of a backend can repeat them. */
export function redactHeaders(failure: ToolFailure, headers: Readonly<Record<string, string>> = {}): ToolFailure {
  const secrets = Object.entries(headers)
    .filter(([name]) => isCredentialName(name))
    .flatMap(([, value]) => [value, value.replace(/^\s*\w+\s+/, "")])
    .filter((value) => value.length >= MIN_SECRET_CHARACTERS);
  const text = JSON.stringify(failure);
  const redactedText = secrets.reduce((redacted, value) => redacted.replaceAll(JSON.stringify(value).slice(1, -1), "[removed]"), text);
  return redactedText === text ? failure : (JSON.parse(redactedText) as ToolFailure);
}

interface HttpFailure {
  readonly status: number;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfter: number | undefined;
  readonly body?: string | undefined;
}

/** Properties in which errors and response bodies nest details. An error of the MCP SDK has the body in `data.text`. */
const nestedProperties = ["error", "response", "data", "text", "body", "cause", "result", "detail"];
const MAX_RECORDS = 20;

/** The value and the objects nested in it, including those in JSON text, from the outside in. */
function recordsIn(value: unknown): Fields[] {
  const records = new Set<Fields>();
  const queue = [value];
  for (const next of queue) {
    const parsed = isText(next) && /^\s*[{[]/.test(next) ? parseJson(next.slice(0, MAX_TEXT_CHARACTERS)) : next;
    if (!isRecord(parsed) || records.has(parsed) || records.size >= MAX_RECORDS) continue;
    records.add(parsed);
    const { errors } = parsed;
    queue.push(...nestedProperties.map((name) => parsed[name]), ...(Array.isArray(errors) ? errors.slice(0, 5).toReversed() : []));
  }
  return [...records];
}

/** Null when no record has an HTTP error status. */
function httpFailureIn(records: readonly Fields[], { now = Date.now }: FailureContext): HttpFailure | null {
  const first = <Value>(names: readonly string[], matches: (found: unknown) => found is Value, among = records): Value | undefined =>
    among.flatMap((record) => names.map((name) => record[name])).find(matches);
  const status = first(["status", "statusCode", "status_code", "code"], isErrorStatus);
  if (status === undefined) return null;
  const headers = first(["headers"], isRecord);
  const retryAfter = [readHeader(headers, "retry-after"), first(["retryAfter", "retry_after", "retry_after_seconds"], isPresent)];
  const body = first(["text", "body"], isText)?.slice(0, MAX_TEXT_CHARACTERS);
  // The `code` of an Error object describes the transport, and its message is the last choice.
  const bodies = records.filter((record) => !(record instanceof Error)).toReversed();
  return {
    status,
    code: first(["code", "error_code", "error"], isName, bodies),
    message:
      first(["message", "error_description", "detail", "title", "error"], isProse, bodies) ?? [body, records[0]!["message"]].find(isProse),
    requestId: first(["requestId", "request_id"], isText) ?? readHeader(headers, "x-request-id"),
    retryAfter: retryAfter.map((value) => toSeconds(value, now())).find((seconds) => seconds !== undefined),
    body,
  };
}

/** Finds an HTTP status in prose: `HTTP 503`, `status code 404`, `Client error '404 Not Found'`. Ignores other numbers. */
function statusInText(text: string, { now = Date.now }: FailureContext): HttpFailure | null {
  const start = text.slice(0, 2_000);
  const found =
    /\b(?:HTTP(?:\/\d(?:\.\d)?)?(?: (?:status|error|code|response))*|status[ _]?code)[ :=(]{1,3}([345]\d\d)\b/i.exec(start) ??
    /\b(?:Client|Server|Redirect) error '([345]\d\d) /.exec(start);
  if (found === null) return null;
  const wait = /\bretry[ -]after[ :=]{1,3}(\d{1,6}(?:\.\d{1,3})?)\b/i.exec(start)?.[1];
  return { status: Number(found[1]), message: text.trim(), retryAfter: toSeconds(wait, now()) };
}

function readHeader(headers: Fields | undefined, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
  return isText(found) ? found : undefined;
}

const MAX_RETRY_AFTER_SECONDS = 86_400;

/** Parses `Retry-After`, in seconds or as a date. A date in the past means 0. */
export function toSeconds(value: unknown, now: number): number | undefined {
  const text = String(value).trim();
  // Only text with the name of a month is a date: Date.parse reads "5" and "-3" as years.
  const date = /[A-Za-z]{3}/.test(text) && text.length <= 100 ? Math.ceil((Date.parse(text) - now) / 1_000) : Number.NaN;
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : date;
  return Number.isFinite(seconds) ? Math.min(Math.max(0, seconds), MAX_RETRY_AFTER_SECONDS) : undefined;
}

function toHttpToolError(tool: string, http: HttpFailure, received: unknown): ToolError {
  const { status, code, requestId, retryAfter } = http;
  const issue = `HTTP ${status}${STATUS_CODES[status] === undefined ? "" : ` ${STATUS_CODES[status]}`}.`;
  const message = http.message === undefined ? undefined : toMessage(http.message);
  const details = http.body ?? (message === undefined ? toJsonText(received) : "");
  return createToolError({
    code: toErrorCode(status),
    tool,
    summary: `${tool} failed: the backend answered ${issue}${message === undefined ? "" : ` ${message}`}`,
    details: [
      {
        path: "",
        issue,
        received_type: receivedType(received),
        upstream_code: code,
        upstream_message: message,
        request_id: requestId?.slice(0, 200),
        upstream_details: details === "" ? undefined : withoutSecrets(details),
      },
    ],
    hints: hintsFor(status, retryAfter),
    meta: retryAfter === undefined ? undefined : { retry_after_seconds: retryAfter },
  });
}

function toErrorCode(status: number): ToolErrorCode {
  if (status === 401) return "AUTH_AUTHENTICATION";
  return status === 403 ? "AUTH_PERMISSION" : `UPSTREAM_HTTP_${status}`;
}

function hintsFor(status: number, retryAfter: number | undefined): string[] {
  const wait = retryAfter === undefined ? "a while" : `${retryAfter} s`;
  if (status === 401)
    return ["The backend did not accept the credentials. A retry does not help; the identity or its credentials must be corrected."];
  if (status === 403)
    return ["The active identity is not permitted to do this. A retry does not help; choose another identity, profile or tool."];
  if (status === 429) return [`Wait ${wait} before the next call, and make fewer calls at once.`];
  if (status === 408 || status >= 500) return [`The error is in the backend. The same call may succeed after ${wait}.`];
  return ["The backend rejected this call. Read its message, change the arguments, then call again."];
}

/** Codes and names of Node.js, its HTTP client, the MCP SDK and our own MCP client (`McpCallError`). */
const timeoutCodes = /^(?:E(?:SOCKET)?TIMEDOUT|UND_ERR_\w+_TIMEOUT|REQUEST_TIMEOUT|TimeoutError|MCP_TIMEOUT)$/;
const lossCodes =
  /^(?:E(?:CONN\w+|PIPE|NOTFOUND|AI_AGAIN|HOST\w+|NETUNREACH)|UND_ERR_(?:SOCKET|CLOSED|DESTROYED)|ERR_SOCKET_CLOSED|CONNECTION_CLOSED|NOT_CONNECTED|SEND_FAILED|MCP_UNREACHABLE|MCP_CONNECTION_LOST)$/;

/** `retryAfter`: seconds until the next attempt to connect. */
type ConnectionFailure = { readonly code: string; readonly retryAfter: number | undefined };

function connectionFailureIn(records: readonly Fields[]): ConnectionFailure | null {
  for (const { code, name, retryAfter } of records) {
    const known = [code, name].find((text) => isText(text) && (timeoutCodes.test(text) || lossCodes.test(text))) as string | undefined;
    if (known !== undefined) return { code: known, retryAfter: toSeconds(retryAfter, 0) };
  }
  return null;
}

function toConnectionError(tool: string, { code, retryAfter }: ConnectionFailure, error: unknown): ToolError {
  const isTimeout = timeoutCodes.test(code);
  return createToolError({
    code: isTimeout ? "UPSTREAM_HTTP_TIMEOUT" : "UPSTREAM_UNREACHABLE",
    tool,
    summary: isTimeout ? `${tool} failed: the backend did not answer in time.` : `${tool} failed: there is no connection to the backend.`,
    details: [
      { path: "", issue: `${code}.`, received_type: "missing", upstream_code: code, upstream_message: toMessage(messageOf(error)) },
    ],
    hints: ["The same call may succeed later. If it fails again, do without this tool and say so."],
    meta: retryAfter === undefined ? undefined : { retry_after_seconds: retryAfter },
  });
}

/** A tool error of another server, which is passed on unchanged. */
function toolErrorIn(records: readonly Fields[]): ForeignToolError | null {
  for (const record of records) {
    const texts = [record["message"], record["text"]].filter(isText);
    const found = [parseForeignToolError(record), ...texts.map(findToolErrorInText)].find((parsed) => parsed !== null);
    if (found !== undefined) return found;
  }
  return null;
}

function joinTexts(content: unknown): string {
  if (!Array.isArray(content)) return "";
  const texts = content.slice(0, 100).map((part: unknown) => (isRecord(part) && isText(part["text"]) ? part["text"] : ""));
  return texts
    .filter((text) => text !== "")
    .join("\n")
    .slice(0, MAX_TEXT_CHARACTERS);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : toJsonText(error) || "The tool failed without a message.";
}

/** A string unchanged, anything else as JSON. */
function toJsonText(value: unknown): string {
  try {
    return (isText(value) ? value : (JSON.stringify(value) ?? "")).slice(0, MAX_TEXT_CHARACTERS);
  } catch {
    return "";
  }
}

function toMessage(text: string): string {
  return ellipsize(withoutSecrets(text.trim().slice(0, MAX_TEXT_CHARACTERS)), MAX_MESSAGE_CHARACTERS);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** Text that is not JSON. */
function isProse(value: unknown): value is string {
  return isText(value) && !/^\s*[{[]/.test(value);
}

function isName(value: unknown): value is string {
  return isText(value) && /^[\w.:-]{1,100}$/.test(value);
}

function isPresent(value: unknown): value is string | number {
  return isText(value) || typeof value === "number";
}

function isErrorStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 300 && Number(value) <= 599;
}
