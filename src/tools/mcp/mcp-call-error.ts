import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import type { ErrorCode } from "../../errors/error-table.ts";
import { SluiceError, type ErrorFacts } from "../../errors/sluice-error.ts";
import { ellipsize } from "../../text/clip-text.ts";
import { toSeconds } from "../tool-failure.ts";
import type { RequestContext } from "./backend-connection.ts";
import type { McpServerEntry, StdioServerEntry } from "./mcp-source-options.ts";
import type { StdioTransport } from "./stdio-transport.ts";

export interface McpCallFacts extends ErrorFacts {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly systemCode?: string | undefined;
}

/**
 * A call got no answer, or no connection could be opened. The next call reconnects. A cancelled call rejects with its signal's reason instead, and a tool's
 * own failure (`isError`) is an answer, not an error.
 */
export class McpCallError extends SluiceError {
  /** HTTP status of the server's response. */
  readonly status: number | undefined;
  /** Seconds, from `Retry-After`, or until the next attempt to reconnect. */
  readonly retryAfter: number | undefined;
  /** From the operating system or fetch: `ECONNREFUSED`, `ENOENT`, `UND_ERR_SOCKET`. */
  readonly systemCode: string | undefined;

  constructor(facts: McpCallFacts) {
    super(facts);
    this.status = facts.status;
    this.retryAfter = facts.retryAfter;
    this.systemCode = facts.systemCode;
  }
}

/** What error messages need to know about a server. */
export interface ServerFacts {
  readonly name: string;
  readonly server: McpServerEntry;
  /** Null for HTTP. */
  readonly stdio: StdioTransport | null;
  readonly redact: (text: string) => string;
}

type Diagnosis = readonly [code: ErrorCode, message: string];

/** Why the connection could not be opened, as a sentence for a person. */
export function describeConnectFailure(error: unknown, facts: ServerFacts, timedOutAfterMs: number | null): McpCallError {
  const status = error instanceof SdkHttpError ? error.status : undefined;
  const systemCode = systemCodeOf(error);
  const [code, message] = diagnose();
  return new McpCallError({ code, message: facts.redact(message), status, systemCode, cause: error });

  function diagnose(): Diagnosis {
    const { server, stdio } = facts;
    if (stdio?.fault) return ["MCP_UNREACHABLE", `The server was stopped because ${stdio.fault}.`];
    if (timedOutAfterMs !== null || isTimeout(error)) return ["MCP_TIMEOUT", describeTimeout(stdio, timedOutAfterMs)];
    if (stdio?.exit) return ["MCP_UNREACHABLE", `${describeExit(stdio)} before it was ready.${describeStderr(stdio)}`];
    if (status === 401) return ["MCP_HTTP_STATUS", "The server requires authorization (HTTP 401). Set its headers in the configuration."];
    if (status === 403) return ["MCP_HTTP_STATUS", "The server denied access (HTTP 403)."];
    if (status !== undefined) return ["MCP_HTTP_STATUS", `The server answered with HTTP ${status}.`];
    if (systemCode !== undefined) return ["MCP_UNREACHABLE", describeSystemFailure(server, systemCode, error)];
    if ("url" in server && error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed) {
      const reason = ellipsize(messageOf(error.cause ?? error), 500);
      return ["MCP_UNREACHABLE", `The server at ${withoutSecretParts(server.url)} does not speak MCP: ${reason}`];
    }
    return ["MCP_UNREACHABLE", `The connection could not be opened: ${ellipsize(messageOf(error), 500)}`];
  }
}

export function describeCallFailure(error: unknown, facts: ServerFacts, context: RequestContext): McpCallError {
  const status = context.status ?? (error instanceof SdkHttpError ? error.status : undefined);
  const retryAfter = toSeconds(context.retryAfter, Date.now());
  const systemCode = systemCodeOf(error);
  const [code, message] = diagnose();
  return new McpCallError({ code, message: facts.redact(message), status, retryAfter, systemCode, cause: error });

  function diagnose(): Diagnosis {
    const { server, stdio } = facts;
    const name = JSON.stringify(facts.name);
    if (isTimeout(error)) return ["MCP_TIMEOUT", `The server ${name} did not answer in time.`];
    if (error instanceof ProtocolError)
      return ["MCP_RPC_ERROR", `The server ${name} answered with error ${error.code}: ${ellipsize(error.message, 500)}`];
    if (status !== undefined) {
      const body = error instanceof SdkHttpError && typeof error.data.text === "string" ? ellipsize(error.data.text.trim(), 500) : "";
      return ["MCP_HTTP_STATUS", `The server ${name} answered with HTTP ${status}${body === "" ? "." : `: ${body}`}`];
    }
    if (stdio?.fault) return ["MCP_CONNECTION_LOST", `The server ${name} was stopped because ${stdio.fault}.`];
    if (error instanceof RangeError)
      return ["MCP_CONNECTION_LOST", `The connection to the server ${name} was closed because ${error.message}.`];
    if (stdio?.exit) return ["MCP_CONNECTION_LOST", `${describeExit(stdio)} during the call.${describeStderr(stdio)}`];
    if ("url" in server && systemCode === "ECONNREFUSED") return ["MCP_UNREACHABLE", describeSystemFailure(server, systemCode, error)];
    const cause = systemCode === undefined ? "" : ` (${systemCode})`;
    if (isConnectionLoss(error)) return ["MCP_CONNECTION_LOST", `The connection to the server ${name} was lost during the call${cause}.`];
    return ["MCP_INVALID_ANSWER", `The server ${name} sent an invalid answer: ${ellipsize(messageOf(error), 500)}`];
  }
}

export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof SdkError && lossCodes.has(error.code)) return true;
  return systemCodeOf(error) !== undefined || (error instanceof Error && lossMessages.test(error.message));
}

const lossCodes: ReadonlySet<string> = new Set([SdkErrorCode.ConnectionClosed, SdkErrorCode.NotConnected, SdkErrorCode.SendFailed]);
const lossMessages = /^(?:Not connected|The server's process has ended\.|The stream ended without an answer\.|terminated|fetch failed)$/;

function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

function describeTimeout(stdio: StdioTransport | null, timeoutMs: number | null): string {
  const within = timeoutMs === null ? "in time" : `within ${timeoutMs / 1_000} s`;
  const garbage = stdio?.garbage ? ` It printed text that is not MCP: ${ellipsize(stdio.garbage, 200)}` : "";
  return `The server did not answer ${within}.${garbage}${stdio === null ? "" : describeStderr(stdio)}`;
}

function describeExit({ exit }: StdioTransport): string {
  return exit?.signal ? `The server's process was killed by ${exit.signal}` : `The server's process exited with code ${exit?.code ?? 0}`;
}

function describeStderr({ stderr }: StdioTransport): string {
  const lines = stderr.last(5);
  return lines.length === 0 ? "" : ` Its last lines on stderr: ${ellipsize(lines.join(" | "), 800)}`;
}

function describeSystemFailure(server: McpServerEntry, code: string, error: unknown): string {
  if ("command" in server) return describeSpawnFailure(server, code, error);
  if (code === "ECONNREFUSED") return `Nothing listens at ${withoutSecretParts(server.url)} (connection refused).`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `The host ${new URL(server.url).hostname} was not found.`;
  return `Could not connect to ${withoutSecretParts(server.url)} (${code}).`;
}

function describeSpawnFailure({ command, cwd }: StdioServerEntry, code: string, error: unknown): string {
  const program = `The program ${JSON.stringify(command)}`;
  if (code === "ENOENT") return `${program}${cwd === undefined ? "" : ` or the directory ${JSON.stringify(cwd)}`} was not found.`;
  return code === "EACCES" ? `${program} is not executable.` : `${program} could not be started: ${messageOf(error)}`;
}

/** Drops the query, user name and password, which can contain keys. */
function withoutSecretParts(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function isSystemCode(code: string): boolean {
  return /^(?:E[A-Z0-9]+|(?:EAI|UND_ERR|ERR_TLS|ERR_SSL|CERT)_\w+)$/.test(code) || (code.indexOf("_CERT") > 0 && /^\w+$/.test(code));
}

/** The first error code of the operating system, TLS or fetch in the chain of causes. */
function systemCodeOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1) {
    const { code } = cause as { code?: unknown };
    if (typeof code === "string" && isSystemCode(code) && !(cause instanceof SdkError)) return code;
  }
  return undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
