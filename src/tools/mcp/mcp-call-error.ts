import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import type { ErrorCode } from "../../errors/error-table.ts";
import { SluiceError, type ErrorFacts } from "../../errors/sluice-error.ts";
import { ellipsize } from "../../text/clip-text.ts";
import { toSeconds } from "../tool-failure.ts";
import type { CallContext } from "./call-context.ts";
import type { McpServerEntry, StdioServerEntry } from "./mcp-source-options.ts";
import type { StdioTransport } from "./stdio-transport.ts";

export interface McpCallFacts extends ErrorFacts {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly systemCode?: string | undefined;
}

/**
 * A call that got no answer, or a connection that could not be made. A lost connection is made anew by the next call. A cancelled call does not reject
 * with this but with its signal's reason. A tool's own failure (`isError`) is an answer, and no error here.
 */
export class McpCallError extends SluiceError {
  /** The HTTP status the server answered with. */
  readonly status: number | undefined;
  /** Seconds, from `Retry-After`, or until the connection is tried again. */
  readonly retryAfter: number | undefined;
  /** Of the operating system or of fetch: `ECONNREFUSED`, `ENOENT`, `UND_ERR_SOCKET`. */
  readonly systemCode: string | undefined;

  constructor(facts: McpCallFacts) {
    super(facts);
    this.status = facts.status;
    this.retryAfter = facts.retryAfter;
    this.systemCode = facts.systemCode;
  }
}

/** What is known of the server when something failed. */
export interface FailureScene {
  readonly name: string;
  readonly server: McpServerEntry;
  /** Of a child process. */
  readonly stdio: StdioTransport | null;
  readonly redact: (text: string) => string;
}

type Finding = readonly [code: ErrorCode, message: string];

/** Why there is no connection, as a sentence for a person. */
export function describeConnectFailure(error: unknown, scene: FailureScene, timedOutAfterMs: number | null): McpCallError {
  const status = error instanceof SdkHttpError ? error.status : undefined;
  const systemCode = systemCodeOf(error);
  const [code, message] = find();
  return new McpCallError({ code, message: scene.redact(message), status, systemCode, cause: error });

  function find(): Finding {
    const { server, stdio } = scene;
    if (stdio?.fault) return ["MCP_UNREACHABLE", `The server was ended because ${stdio.fault}.`];
    if (timedOutAfterMs !== null || isTimeout(error)) return ["MCP_TIMEOUT", describeSilence(stdio, timedOutAfterMs)];
    if (stdio?.exit) return ["MCP_UNREACHABLE", `${describeExit(stdio)} before it was ready.${lastWords(stdio)}`];
    if (status === 401) return ["MCP_HTTP_STATUS", "The server wants authorization (HTTP 401). Set its headers in the configuration."];
    if (status === 403) return ["MCP_HTTP_STATUS", "The server denies access (HTTP 403)."];
    if (status !== undefined) return ["MCP_HTTP_STATUS", `The server answered with HTTP ${status}.`];
    if (systemCode !== undefined) return ["MCP_UNREACHABLE", describeSystemFailure(server, systemCode, error)];
    if ("url" in server && error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed) {
      const reason = ellipsize(messageOf(error.cause ?? error), 500);
      return ["MCP_UNREACHABLE", `What answers at ${withoutQuery(server.url)} does not speak MCP: ${reason}`];
    }
    return ["MCP_UNREACHABLE", `The connection could not be made: ${ellipsize(messageOf(error), 500)}`];
  }
}

/** Why a call got no answer. */
export function describeCallFailure(error: unknown, scene: FailureScene, context: CallContext): McpCallError {
  const status = context.status ?? (error instanceof SdkHttpError ? error.status : undefined);
  const retryAfter = toSeconds(context.retryAfter, Date.now());
  const systemCode = systemCodeOf(error);
  const [code, message] = find();
  return new McpCallError({ code, message: scene.redact(message), status, retryAfter, systemCode, cause: error });

  function find(): Finding {
    const { server, stdio } = scene;
    const name = JSON.stringify(scene.name);
    if (isTimeout(error)) return ["MCP_TIMEOUT", `The server ${name} did not answer in time.`];
    if (error instanceof ProtocolError)
      return ["MCP_RPC_ERROR", `The server ${name} answered with error ${error.code}: ${ellipsize(error.message, 500)}`];
    if (status !== undefined) {
      const body = error instanceof SdkHttpError && typeof error.data.text === "string" ? ellipsize(error.data.text.trim(), 500) : "";
      return ["MCP_HTTP_STATUS", `The server ${name} answered with HTTP ${status}${body === "" ? "." : `: ${body}`}`];
    }
    if (stdio?.fault) return ["MCP_CONNECTION_LOST", `The server ${name} was ended because ${stdio.fault}.`];
    if (error instanceof RangeError)
      return ["MCP_CONNECTION_LOST", `The connection to the server ${name} was cut because ${error.message}.`];
    if (stdio?.exit) return ["MCP_CONNECTION_LOST", `${describeExit(stdio)} in the middle of the call.${lastWords(stdio)}`];
    if ("url" in server && systemCode === "ECONNREFUSED") return ["MCP_UNREACHABLE", describeSystemFailure(server, systemCode, error)];
    const cause = systemCode === undefined ? "" : ` (${systemCode})`;
    if (isConnectionLoss(error))
      return ["MCP_CONNECTION_LOST", `The connection to the server ${name} was lost in the middle of the call${cause}.`];
    return ["MCP_INVALID_ANSWER", `The server ${name} gave no answer that can be used: ${ellipsize(messageOf(error), 500)}`];
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

function describeSilence(stdio: StdioTransport | null, timeoutMs: number | null): string {
  const within = timeoutMs === null ? "in time" : `within ${timeoutMs / 1_000} s`;
  const noise = stdio?.garbage ? ` What it prints is not the protocol: ${ellipsize(stdio.garbage, 200)}` : "";
  return `The server did not answer ${within}.${noise}${stdio === null ? "" : lastWords(stdio)}`;
}

function describeExit({ exit }: StdioTransport): string {
  return exit?.signal ? `The server's process was ended by ${exit.signal}` : `The server's process exited with code ${exit?.code ?? 0}`;
}

function lastWords({ stderr }: StdioTransport): string {
  const lines = stderr.last(5);
  return lines.length === 0 ? "" : ` Its last lines on stderr: ${ellipsize(lines.join(" | "), 800)}`;
}

function describeSystemFailure(server: McpServerEntry, code: string, error: unknown): string {
  if ("command" in server) return describeSpawnFailure(server, code, error);
  if (code === "ECONNREFUSED") return `Nothing listens at ${withoutQuery(server.url)} (connection refused).`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `The host ${new URL(server.url).hostname} was not found.`;
  return `There is no connection to ${withoutQuery(server.url)} (${code}).`;
}

function describeSpawnFailure({ command, cwd }: StdioServerEntry, code: string, error: unknown): string {
  const program = `The program ${JSON.stringify(command)}`;
  if (code === "ENOENT") return `${program}${cwd === undefined ? "" : ` or the directory ${JSON.stringify(cwd)}`} was not found.`;
  return code === "EACCES" ? `${program} may not be run.` : `${program} could not be started: ${messageOf(error)}`;
}

/** A query, or what stands before the host, can hold a key. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

const systemCodes = /^(?:E[A-Z0-9]+|EAI_\w+|UND_ERR_\w+|ERR_(?:TLS|SSL)_\w+|CERT_\w+|\w+_CERT\w*)$/;

/** The first code of the operating system, of TLS or of fetch along the causes. */
function systemCodeOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1) {
    const { code } = cause as { code?: unknown };
    if (typeof code === "string" && systemCodes.test(code) && !(cause instanceof SdkError)) return code;
  }
  return undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
