import { SluiceError, type ErrorFacts } from "../../errors/sluice-error.ts";

export type McpCallErrorCode =
  /** No connection could be made. Nothing was sent. */
  | "MCP_UNREACHABLE"
  /** The connection ended before the answer. The server may have done the work. */
  | "MCP_CONNECTION_LOST"
  /** No answer in time. The server was told to stop. */
  | "MCP_TIMEOUT"
  /** An HTTP status instead of an answer: see `status`. */
  | "MCP_HTTP_STATUS"
  /** A JSON-RPC error instead of an answer: see `rpcCode`. */
  | "MCP_RPC_ERROR"
  /** An answer that is none: not the protocol, or it asks for input that nobody can give. */
  | "MCP_INVALID_ANSWER";

export interface McpCallFacts extends ErrorFacts {
  readonly code: McpCallErrorCode;
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly systemCode?: string | undefined;
  readonly rpcCode?: number | undefined;
  readonly rpcData?: unknown;
}

/**
 * A call that got no answer. It says nothing about the next one: a lost connection is made anew. A cancelled call does not reject with this but with
 * its signal's reason. A tool's own failure (`isError`) is an answer, and no error here.
 */
export class McpCallError extends SluiceError {
  declare readonly code: McpCallErrorCode;
  /** The HTTP status the server answered with. */
  readonly status: number | undefined;
  /** Seconds, from `Retry-After`, or until the connection is tried again. */
  readonly retryAfter: number | undefined;
  /** Of the operating system or of fetch: `ECONNREFUSED`, `ENOENT`, `UND_ERR_SOCKET`. */
  readonly systemCode: string | undefined;
  /** Of JSON-RPC: `-32602`. */
  readonly rpcCode: number | undefined;
  readonly rpcData: unknown;
  readonly timedOut: boolean;

  constructor(facts: McpCallFacts) {
    super(facts);
    this.status = facts.status;
    this.retryAfter = facts.retryAfter;
    this.systemCode = facts.systemCode;
    this.rpcCode = facts.rpcCode;
    this.rpcData = facts.rpcData;
    this.timedOut = facts.code === "MCP_TIMEOUT";
  }
}
