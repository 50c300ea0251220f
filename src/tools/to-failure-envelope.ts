import { STATUS_CODES } from "node:http";
import type { EnvelopeCode } from "../errors/envelope-table.ts";
import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { findEnvelopeInText, parseForeignEnvelope, type ForeignEnvelope } from "../errors/foreign-envelope.ts";
import { isRecord } from "../errors/is-record.ts";
import { receivedType } from "../errors/received-type.ts";
import type { ToolAnswer } from "./contract.ts";
import { withoutSecrets } from "./credentials/find-secret.ts";
import { readConnectionFailure, type ConnectionFailure } from "./failures/read-connection-failure.ts";
import { readHttpFailure, readHttpStatusInText, type HttpFailure } from "./failures/read-http-failure.ts";

/** What a failed call becomes. `plain` is a failure that says nothing that could be put in an envelope: in Python, RuntimeError("type: message"). */
export type ToolFailure =
  | { readonly kind: "envelope"; readonly envelope: Envelope | ForeignEnvelope }
  | { readonly kind: "plain"; readonly type: string; readonly message: string };

export interface FailureContext {
  /** The name it was called by. */
  readonly tool: string;
  /** Milliseconds since 1970, for dates in `Retry-After`. */
  readonly now?: () => number;
}

const MAX_TEXT_CHARACTERS = 262_144;
const MAX_MESSAGE_CHARACTERS = 4_000;

/** Of an answer that says `isError`; null when it is a value. */
export function failureOfAnswer({ output, as }: ToolAnswer, { tool, now = Date.now }: FailureContext): ToolFailure | null {
  if (as !== "mcp" || !isRecord(output) || output["isError"] !== true) return null;
  const structured = output["structuredContent"];
  const text = textOf(output["content"]);
  const envelope = envelopeIn(structured) ?? findEnvelopeInText(text);
  if (envelope !== null) return { kind: "envelope", envelope };
  const http = readHttpFailure(structured, now()) ?? readHttpFailure(text, now()) ?? readHttpStatusInText(text, now());
  if (http !== null) return { kind: "envelope", envelope: toHttpEnvelope(tool, http, structured ?? text) };
  return { kind: "plain", type: "ToolError", message: toMessage(text || jsonOf(structured) || "The tool failed without saying how.") };
}

/** Of what a call was rejected with. An abort by the caller is not one of these: the caller knows. */
export function failureOfError(error: unknown, { tool, now = Date.now }: FailureContext): ToolFailure {
  const envelope = envelopeInError(error);
  if (envelope !== null) return { kind: "envelope", envelope };
  const http = readHttpFailure(error, now()) ?? unauthorized(error);
  if (http !== null) return { kind: "envelope", envelope: toHttpEnvelope(tool, http, http.body ?? undefined) };
  const connection = readConnectionFailure(error);
  if (connection !== null) return { kind: "envelope", envelope: toConnectionEnvelope(tool, connection, error) };
  return { kind: "plain", type: typeNameOf(error), message: toMessage(wordsOf(error)) };
}

/** Of a call that took longer than it may. */
export function failureOfTimeout(tool: string, timeoutMs: number): ToolFailure {
  return {
    kind: "envelope",
    envelope: createEnvelope({
      code: "UPSTREAM_HTTP_TIMEOUT",
      tool,
      summary: `${tool} did not answer within ${timeoutMs / 1000} s.`,
      details: [{ path: "", issue: `No answer within ${timeoutMs / 1000} s.`, received_type: "missing" }],
      hints: ["What it was asked to do may have happened. Ask for less at once, or check its state before calling it again."],
    }),
  };
}

function toHttpEnvelope(tool: string, http: HttpFailure, received: unknown): Envelope {
  const { status, code, requestId, retryAfterSeconds } = http;
  const issue = `HTTP ${status}${STATUS_CODES[status] === undefined ? "" : ` ${STATUS_CODES[status]}`}.`;
  const message = http.message === null ? null : toMessage(http.message);
  return createEnvelope({
    code: codeOf(status),
    tool,
    summary: `${tool} failed: the backend answered ${issue}${message === null ? "" : ` ${message}`}`,
    details: [
      {
        path: "",
        issue,
        received_type: receivedType(received),
        upstream_code: code ?? undefined,
        upstream_message: message ?? undefined,
        request_id: requestId ?? undefined,
        upstream_details: http.body === null ? undefined : withoutSecrets(http.body),
      },
    ],
    hints: hintsFor(status, retryAfterSeconds),
    meta: retryAfterSeconds === null ? undefined : { retry_after_seconds: retryAfterSeconds },
  });
}

function codeOf(status: number): EnvelopeCode {
  if (status === 401) return "AUTH_AUTHENTICATION";
  return status === 403 ? "AUTH_PERMISSION" : `UPSTREAM_HTTP_${status}`;
}

function hintsFor(status: number, retryAfter: number | null): string[] {
  const wait = retryAfter === null ? "a while" : `${retryAfter} s`;
  if (status === 401)
    return ["The backend does not know the caller. A retry does not help; the identity or its credentials have to be put right."];
  if (status === 403) return ["The active identity may not do this. A retry does not help; choose another identity, profile or tool."];
  if (status === 429) return [`Wait ${wait} before the next call, and make fewer calls at once.`];
  if (status === 408 || status >= 500) return [`The fault is the backend's. The same call may succeed after ${wait}.`];
  return ["The backend does not accept this call as it is. Read its message, change the arguments, then call again."];
}

function toConnectionEnvelope(tool: string, { how, code, retryAfterSeconds }: ConnectionFailure, error: unknown): Envelope {
  const message = toMessage(wordsOf(error));
  return createEnvelope({
    code: how === "timeout" ? "UPSTREAM_HTTP_TIMEOUT" : "UPSTREAM_UNREACHABLE",
    tool,
    summary:
      how === "timeout" ? `${tool} failed: the backend did not answer in time.` : `${tool} failed: there is no connection to the backend.`,
    details: [{ path: "", issue: `${code}.`, received_type: "missing", upstream_code: code, upstream_message: message }],
    hints: ["The same call may succeed later. If it fails again, do without this tool and say so."],
    meta: retryAfterSeconds === null ? undefined : { retry_after_seconds: retryAfterSeconds },
  });
}

function envelopeIn(value: unknown): ForeignEnvelope | null {
  if (!isRecord(value)) return null;
  const candidates = [value, value["error"], value["result"], value["detail"]];
  return firstEnvelope(candidates, parseForeignEnvelope);
}

/** In its data, its message, or those of its causes. */
function envelopeInError(error: unknown): ForeignEnvelope | null {
  const chain: Record<string, unknown>[] = [];
  for (let next = error; typeof next === "object" && next !== null && chain.length < 5; next = (next as Error).cause) {
    chain.push(next as Record<string, unknown>);
  }
  return firstEnvelope(chain, ({ data, message }) => {
    const text = isRecord(data) && typeof data["text"] === "string" ? data["text"] : "";
    return envelopeIn(data) ?? findEnvelopeInText(typeof message === "string" ? message : "") ?? findEnvelopeInText(text);
  });
}

function firstEnvelope<Item>(items: readonly Item[], read: (item: Item) => ForeignEnvelope | null): ForeignEnvelope | null {
  for (const item of items) {
    const found = read(item);
    if (found !== null) return found;
  }
  return null;
}

/** The MCP SDK's error for a server that asks for a login says so by its name only. */
function unauthorized(error: unknown): HttpFailure | null {
  const isIt = error instanceof Error && (error.name === "UnauthorizedError" || error.constructor.name === "UnauthorizedError");
  return isIt ? { status: 401, code: null, message: error.message, requestId: null, retryAfterSeconds: null, body: null } : null;
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return "";
  const texts = content.slice(0, 100).map((part: unknown) => (isRecord(part) && typeof part["text"] === "string" ? part["text"] : ""));
  return texts
    .filter((text) => text !== "")
    .join("\n")
    .slice(0, MAX_TEXT_CHARACTERS);
}

function jsonOf(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? "").slice(0, MAX_TEXT_CHARACTERS);
  } catch {
    return "";
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : jsonOf(error) || "The tool failed without saying how.";
}

function toMessage(text: string): string {
  const clean = withoutSecrets(text.trim().slice(0, MAX_TEXT_CHARACTERS)).toWellFormed();
  return clean.length <= MAX_MESSAGE_CHARACTERS ? clean : `${clean.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…`.toWellFormed();
}

function typeNameOf(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return /^[\w.]{1,100}$/.test(error.name) ? error.name : "Error";
}
