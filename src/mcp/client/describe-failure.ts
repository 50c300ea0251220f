import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import type { CallContext } from "./call-context.ts";
import type { McpServerEntry } from "./contract.ts";
import { McpCallError, type McpCallFacts } from "./mcp-call-error.ts";
import type { StdioTransport } from "./stdio-transport.ts";

/** What is known of the server when something failed. */
export interface FailureScene {
  readonly name: string;
  readonly server: McpServerEntry;
  /** Of a child process. */
  readonly stdio: StdioTransport | null;
  readonly redact: (text: string) => string;
}

/** Why there is no connection, as a sentence for a person. */
export function describeConnectFailure(error: unknown, scene: FailureScene, timedOutAfterMs: number | null): McpCallError {
  const status = error instanceof SdkHttpError ? error.status : undefined;
  const systemCode = systemCodeOf(error);
  const facts = (code: McpCallFacts["code"], message: string): McpCallError =>
    new McpCallError({ code, message: scene.redact(message), status, systemCode, cause: error });
  const { server, stdio } = scene;
  if (error instanceof McpCallError) return error;
  if (stdio?.fault) return facts("MCP_UNREACHABLE", `The server was ended because ${stdio.fault}.`);
  if (timedOutAfterMs !== null || isTimeout(error)) return facts("MCP_TIMEOUT", describeSilence(scene, timedOutAfterMs));
  if (stdio?.exit) return facts("MCP_UNREACHABLE", `${describeExit(stdio)} before it was ready.${lastWords(stdio)}`);
  if (status === 401) return facts("MCP_HTTP_STATUS", `The server wants authorization (HTTP 401). Set its headers in the configuration.`);
  if (status === 403) return facts("MCP_HTTP_STATUS", `The server denies access (HTTP 403).`);
  if (status !== undefined) return facts("MCP_HTTP_STATUS", `The server answered with HTTP ${status}.`);
  if ("command" in server && systemCode !== undefined) return facts("MCP_UNREACHABLE", describeSpawnFailure(server, systemCode, error));
  if ("url" in server && systemCode !== undefined) return facts("MCP_UNREACHABLE", describeNetworkFailure(server.url, systemCode));
  if ("url" in server && error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed) {
    return facts(
      "MCP_UNREACHABLE",
      `What answers at ${withoutQuery(server.url)} does not speak MCP: ${clip(messageOf(error.cause ?? error))}`,
    );
  }
  return facts("MCP_UNREACHABLE", `The connection could not be made: ${clip(messageOf(error))}`);
}

/** Why a call got no answer. */
export function describeCallFailure(error: unknown, scene: FailureScene, context: CallContext): McpCallError {
  const status = context.status ?? (error instanceof SdkHttpError ? error.status : undefined);
  const systemCode = systemCodeOf(error);
  const name = JSON.stringify(scene.name);
  const facts = (code: McpCallFacts["code"], message: string, more?: Partial<McpCallFacts>): McpCallError =>
    new McpCallError({ code, message: scene.redact(message), status, systemCode, cause: error, ...more });
  if (error instanceof McpCallError) return error;
  if (isTimeout(error)) return facts("MCP_TIMEOUT", `The server ${name} did not answer in time.`);
  if (error instanceof ProtocolError) {
    return facts("MCP_RPC_ERROR", `The server ${name} answered with error ${error.code}: ${clip(error.message)}`, {
      rpcCode: error.code,
      rpcData: error.data,
    });
  }
  if (status !== undefined) {
    const body = error instanceof SdkHttpError && typeof error.data.text === "string" ? clip(error.data.text.trim()) : "";
    const message = `The server ${name} answered with HTTP ${status}${body === "" ? "." : `: ${body}`}`;
    return facts("MCP_HTTP_STATUS", message, { retryAfter: toSeconds(context.retryAfter) });
  }
  if (scene.stdio?.fault) return facts("MCP_CONNECTION_LOST", `The server ${name} was ended because ${scene.stdio.fault}.`);
  if (error instanceof RangeError)
    return facts("MCP_CONNECTION_LOST", `The connection to the server ${name} was cut because ${error.message}.`);
  if (scene.stdio?.exit)
    return facts("MCP_CONNECTION_LOST", `${describeExit(scene.stdio)} in the middle of the call.${lastWords(scene.stdio)}`);
  if (systemCode === "ECONNREFUSED" && "url" in scene.server) {
    return facts("MCP_UNREACHABLE", describeNetworkFailure(scene.server.url, systemCode));
  }
  if (isConnectionLoss(error)) {
    return facts(
      "MCP_CONNECTION_LOST",
      `The connection to the server ${name} was lost in the middle of the call${systemCode ? ` (${systemCode})` : ""}.`,
    );
  }
  return facts("MCP_INVALID_ANSWER", `The server ${name} gave no answer that can be used: ${clip(messageOf(error))}`);
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

function describeSilence({ stdio }: FailureScene, timeoutMs: number | null): string {
  const within = timeoutMs === null ? "in time" : `within ${timeoutMs / 1_000} s`;
  const noise = stdio?.garbage ? ` What it prints is not the protocol: ${clip(stdio.garbage, 200)}` : "";
  return `The server did not answer ${within}.${noise}${stdio === null ? "" : lastWords(stdio)}`;
}

function describeExit({ exit }: StdioTransport): string {
  return exit?.signal ? `The server's process was ended by ${exit.signal}` : `The server's process exited with code ${exit?.code ?? 0}`;
}

function lastWords({ stderr }: StdioTransport): string {
  const lines = stderr.last(5);
  return lines.length === 0 ? "" : ` Its last lines on stderr: ${clip(lines.join(" | "), 800)}`;
}

function describeSpawnFailure({ command, cwd }: { command: string; cwd?: string | undefined }, code: string, error: unknown): string {
  if (code === "ENOENT" && cwd !== undefined)
    return `The program ${JSON.stringify(command)} or the directory ${JSON.stringify(cwd)} was not found.`;
  if (code === "ENOENT") return `The program ${JSON.stringify(command)} was not found.`;
  if (code === "EACCES") return `The program ${JSON.stringify(command)} may not be run.`;
  return `The program ${JSON.stringify(command)} could not be started: ${messageOf(error)}`;
}

function describeNetworkFailure(url: string, code: string): string {
  if (code === "ECONNREFUSED") return `Nothing listens at ${withoutQuery(url)} (connection refused).`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `The host ${new URL(url).hostname} was not found.`;
  return `There is no connection to ${withoutQuery(url)} (${code}).`;
}

/** A query, or what stands before the host, can hold a key. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** The first code of the operating system, of TLS or of fetch along the causes. */
function systemCodeOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1) {
    const { code } = cause as { code?: unknown };
    if (
      typeof code === "string" &&
      /^(?:E[A-Z0-9]+|EAI_\w+|UND_ERR_\w+|ERR_(?:TLS|SSL)_\w+|CERT_\w+|\w+_CERT\w*)$/.test(code) &&
      !(cause instanceof SdkError)
    ) {
      return code;
    }
  }
  return undefined;
}

function toSeconds(retryAfter: string | null | undefined): number | undefined {
  if (!retryAfter) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function clip(text: string, limit = 500): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}
