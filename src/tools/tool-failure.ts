import { STATUS_CODES } from "node:http";
import type { ToolErrorCode } from "../errors/error-table.ts";
import { createToolError, type ToolError, receivedType } from "../errors/tool-error.ts";
import { findToolErrorInText, parseForeignToolError, type ForeignToolError } from "../errors/foreign-tool-error.ts";
import { isRecord, parseJson } from "../text/json.ts";
import { ellipsize } from "../text/clip-text.ts";
import type { ToolAnswer } from "./backend-tool.ts";
import { isCredentialName, withoutSecrets } from "./find-credentials.ts";

/** What a failed call becomes. `plain` is a failure that says nothing that could be put in an envelope: in Python, RuntimeError("type: message"). */
export type ToolFailure =
  | { readonly kind: "toolError"; readonly toolError: ToolError | ForeignToolError }
  | { readonly kind: "plain"; readonly type: string; readonly message: string };

export interface FailureContext {
  /** The name it was called by. */
  readonly tool: string;
  /** Milliseconds since 1970, for dates in `Retry-After`. */
  readonly now?: (() => number) | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const MAX_TEXT_CHARACTERS = 262_144;
const MAX_MESSAGE_CHARACTERS = 4_000;

/** Of an answer that says `isError`; null when it is a value. */
export function failureOfAnswer({ output, as }: ToolAnswer, context: FailureContext): ToolFailure | null {
  if (as !== "mcp" || !isRecord(output) || output["isError"] !== true) return null;
  const structured = output["structuredContent"];
  const text = textOf(output["content"]);
  const records = [structured, text].flatMap(recordsIn);
  const toolError = toolErrorIn(records) ?? findToolErrorInText(text);
  if (toolError !== null) return { kind: "toolError", toolError };
  const http = httpFailureIn(records, context) ?? statusInText(text, context);
  if (http !== null) return { kind: "toolError", toolError: toHttpToolError(context.tool, http, structured ?? text) };
  return { kind: "plain", type: "ToolError", message: toMessage(text || jsonOf(structured) || "The tool failed without saying how.") };
}

/** Of what a call was rejected with: an error of the MCP client, or of a local function. An abort by the caller is not one of these. */
export function failureOfError(error: unknown, context: FailureContext): ToolFailure {
  const records = recordsIn(error);
  const toolError = toolErrorIn(records);
  if (toolError !== null) return { kind: "toolError", toolError };
  const http = httpFailureIn(records, context);
  if (http !== null)
    return { kind: "toolError", toolError: toHttpToolError(context.tool, http, error instanceof Error ? http.body : error) };
  const connection = connectionFailureIn(records);
  if (connection !== null) return { kind: "toolError", toolError: toConnectionError(context.tool, connection, error) };
  const type = error instanceof Error && /^[\w.]{1,100}$/.test(error.name) ? error.name : "Error";
  return { kind: "plain", type, message: toMessage(wordsOf(error)) };
}

/** Of a call that took longer than it may. */
export function failureOfTimeout(tool: string, timeoutMs: number): ToolFailure {
  return {
    kind: "toolError",
    toolError: createToolError({
      code: "UPSTREAM_HTTP_TIMEOUT",
      tool,
      summary: `${tool} did not answer within ${timeoutMs / 1000} s.`,
      details: [{ path: "", issue: `No answer within ${timeoutMs / 1000} s.`, received_type: "missing" }],
      hints: ["What it was asked to do may have happened. Ask for less at once, or check its state before calling it again."],
    }),
  };
}

/** Shorter values would be found where they are not meant. */
const SHORTEST_SECRET = 8;

/** The failure without the credentials among the headers that were sent, whatever they look like: a backend's error can repeat them. */
export function hideHeaders(failure: ToolFailure, headers: Readonly<Record<string, string>> = {}): ToolFailure {
  const secrets = Object.entries(headers)
    .filter(([name]) => isCredentialName(name))
    .flatMap(([, value]) => [value, value.replace(/^\s*\w+\s+/, "")])
    .filter((value) => value.length >= SHORTEST_SECRET);
  const text = JSON.stringify(failure);
  const clean = secrets.reduce((hidden, value) => hidden.replaceAll(JSON.stringify(value).slice(1, -1), "[removed]"), text);
  return clean === text ? failure : (JSON.parse(clean) as ToolFailure);
}

interface HttpFailure {
  readonly status: number;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfter: number | undefined;
  /** The body, as text. */
  readonly body?: string | undefined;
}

/** Where errors, and the bodies of answers, hold what they are about. The MCP SDK's error has the body as `data.text`. */
const nested = ["error", "response", "data", "text", "body", "cause", "result", "detail"];
const MAX_RECORDS = 20;

/** The value and what is nested in it, also as JSON text, from the outside in. */
function recordsIn(value: unknown): Fields[] {
  const records = new Set<Fields>();
  const open = [value];
  for (const next of open) {
    const read = isText(next) && /^\s*[{[]/.test(next) ? parseJson(next.slice(0, MAX_TEXT_CHARACTERS)) : next;
    if (!isRecord(read) || records.has(read) || records.size >= MAX_RECORDS) continue;
    records.add(read);
    const { errors } = read;
    open.push(...nested.map((name) => read[name]), ...(Array.isArray(errors) ? errors.slice(0, 5).toReversed() : []));
  }
  return [...records];
}

/** Null when no record names an HTTP status of an error. */
function httpFailureIn(records: readonly Fields[], { now = Date.now }: FailureContext): HttpFailure | null {
  const first = <Value>(names: readonly string[], isIt: (one: unknown) => one is Value, among = records): Value | undefined =>
    among.flatMap((record) => names.map((name) => record[name])).find(isIt);
  const status = first(["status", "statusCode", "status_code", "code"], isErrorStatus);
  if (status === undefined) return null;
  const headers = first(["headers"], isRecord);
  const retryAfter = [header(headers, "retry-after"), first(["retryAfter", "retry_after", "retry_after_seconds"], isPresent)];
  const body = first(["text", "body"], isText)?.slice(0, MAX_TEXT_CHARACTERS);
  // An error's own `code` says how the transport failed, and its own message is the last choice.
  const said = records.filter((record) => !(record instanceof Error)).toReversed();
  return {
    status,
    code: first(["code", "error_code", "error"], isName, said),
    message:
      first(["message", "error_description", "detail", "title", "error"], isWords, said) ?? [body, records[0]!["message"]].find(isWords),
    requestId: first(["requestId", "request_id"], isText) ?? header(headers, "x-request-id"),
    retryAfter: retryAfter.map((one) => toSeconds(one, now())).find((one) => one !== undefined),
    body,
  };
}

/** From words: `HTTP 503`, `status code 404`, `Client error '404 Not Found'`. Other numbers in a text are not statuses. */
function statusInText(text: string, { now = Date.now }: FailureContext): HttpFailure | null {
  const start = text.slice(0, 2_000);
  const found =
    /\b(?:HTTP(?:\/\d(?:\.\d)?)?(?: (?:status|error|code|response))*|status[ _]?code)[ :=(]{1,3}([345]\d\d)\b/i.exec(start) ??
    /\b(?:Client|Server|Redirect) error '([345]\d\d) /.exec(start);
  if (found === null) return null;
  const wait = /\bretry[ -]after[ :=]{1,3}(\d{1,6}(?:\.\d{1,3})?)\b/i.exec(start)?.[1];
  return { status: Number(found[1]), message: text.trim(), retryAfter: toSeconds(wait, now()) };
}

function header(headers: Fields | undefined, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
  return isText(found) ? found : undefined;
}

const MAX_RETRY_AFTER_SECONDS = 86_400;

/** From `Retry-After`, in seconds or as a date. A date in the past means now. */
export function toSeconds(value: unknown, now: number): number | undefined {
  const text = String(value).trim();
  // Only what names a month is a date: Date.parse takes "5" and "-3" for years.
  const date = /[A-Za-z]{3}/.test(text) && text.length <= 100 ? Math.ceil((Date.parse(text) - now) / 1_000) : Number.NaN;
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : date;
  return Number.isFinite(seconds) ? Math.min(Math.max(0, seconds), MAX_RETRY_AFTER_SECONDS) : undefined;
}

function toHttpToolError(tool: string, http: HttpFailure, received: unknown): ToolError {
  const { status, code, requestId, retryAfter } = http;
  const issue = `HTTP ${status}${STATUS_CODES[status] === undefined ? "" : ` ${STATUS_CODES[status]}`}.`;
  const message = http.message === undefined ? undefined : toMessage(http.message);
  const details = http.body ?? (message === undefined ? jsonOf(received) : "");
  return createToolError({
    code: codeOf(status),
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

function codeOf(status: number): ToolErrorCode {
  if (status === 401) return "AUTH_AUTHENTICATION";
  return status === 403 ? "AUTH_PERMISSION" : `UPSTREAM_HTTP_${status}`;
}

function hintsFor(status: number, retryAfter: number | undefined): string[] {
  const wait = retryAfter === undefined ? "a while" : `${retryAfter} s`;
  if (status === 401)
    return ["The backend does not know the caller. A retry does not help; the identity or its credentials have to be put right."];
  if (status === 403) return ["The active identity may not do this. A retry does not help; choose another identity, profile or tool."];
  if (status === 429) return [`Wait ${wait} before the next call, and make fewer calls at once.`];
  if (status === 408 || status >= 500) return [`The fault is the backend's. The same call may succeed after ${wait}.`];
  return ["The backend does not accept this call as it is. Read its message, change the arguments, then call again."];
}

/** Codes and names of Node.js, its HTTP client, the MCP SDK and our own MCP client (`McpCallError`). */
const timeoutCodes = /^(?:E(?:SOCKET)?TIMEDOUT|UND_ERR_\w+_TIMEOUT|REQUEST_TIMEOUT|TimeoutError|MCP_TIMEOUT)$/;
const lossCodes =
  /^(?:E(?:CONN\w+|PIPE|NOTFOUND|AI_AGAIN|HOST\w+|NETUNREACH)|UND_ERR_(?:SOCKET|CLOSED|DESTROYED)|ERR_SOCKET_CLOSED|CONNECTION_CLOSED|NOT_CONNECTED|SEND_FAILED|MCP_UNREACHABLE|MCP_CONNECTION_LOST)$/;

interface ConnectionFailure {
  readonly code: string;
  /** How long the connection is not tried again. */
  readonly retryAfter: number | undefined;
}

function connectionFailureIn(records: readonly Fields[]): ConnectionFailure | null {
  for (const { code, name, retryAfter } of records) {
    const known = [code, name].find((one) => isText(one) && (timeoutCodes.test(one) || lossCodes.test(one))) as string | undefined;
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
    details: [{ path: "", issue: `${code}.`, received_type: "missing", upstream_code: code, upstream_message: toMessage(wordsOf(error)) }],
    hints: ["The same call may succeed later. If it fails again, do without this tool and say so."],
    meta: retryAfter === undefined ? undefined : { retry_after_seconds: retryAfter },
  });
}

/** An envelope of another server, which is passed on whole. */
function toolErrorIn(records: readonly Fields[]): ForeignToolError | null {
  for (const record of records) {
    const texts = [record["message"], record["text"]].filter(isText);
    const found = [parseForeignToolError(record), ...texts.map(findToolErrorInText)].find((one) => one !== null);
    if (found !== undefined) return found;
  }
  return null;
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return "";
  const texts = content.slice(0, 100).map((part: unknown) => (isRecord(part) && isText(part["text"]) ? part["text"] : ""));
  return texts
    .filter((text) => text !== "")
    .join("\n")
    .slice(0, MAX_TEXT_CHARACTERS);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : jsonOf(error) || "The tool failed without saying how.";
}

/** Text as it is, and anything else as JSON. */
function jsonOf(value: unknown): string {
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

/** JSON is read as such. */
function isWords(value: unknown): value is string {
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
