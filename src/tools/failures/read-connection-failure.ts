/** How a connection failed, by the codes that Node.js, its HTTP client, the MCP SDK and our own client of MCP (`McpCallError`) give. */
export interface ConnectionFailure {
  readonly how: "timeout" | "unreachable";
  readonly code: string;
  /** How long the connection is not tried again. */
  readonly retryAfterSeconds: number | null;
}

const timeouts = new Set([
  ...["ETIMEDOUT", "ESOCKETTIMEDOUT", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"],
  ...["REQUEST_TIMEOUT", "TimeoutError", "MCP_TIMEOUT"],
]);

const unreachable = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN"],
  ...["UND_ERR_SOCKET", "UND_ERR_CLOSED", "UND_ERR_DESTROYED", "ERR_SOCKET_CLOSED"],
  ...["CONNECTION_CLOSED", "NOT_CONNECTED", "SEND_FAILED", "CLIENT_HTTP_FAILED_TO_OPEN_STREAM"],
  ...["MCP_UNREACHABLE", "MCP_CONNECTION_LOST"],
]);

/** JSON-RPC codes of the older MCP SDK, on its own error class only: a server may use the same numbers. */
const rpcTimeout = -32_001;
const rpcClosed = -32_000;

/** Looks at the error, its causes and the errors that it sums up. */
export function readConnectionFailure(error: unknown): ConnectionFailure | null {
  const open: unknown[] = [error];
  for (let index = 0; index < open.length && index < 20; index += 1) {
    const next = open[index];
    if (typeof next !== "object" || next === null) continue;
    const { code, name, message, cause, errors, retryAfter } = next as Record<string, unknown>;
    const retryAfterSeconds = typeof retryAfter === "number" && retryAfter >= 0 ? retryAfter : null;
    const known = [code, name].find((one) => typeof one === "string" && (timeouts.has(one) || unreachable.has(one))) as string | undefined;
    if (known !== undefined) return { how: timeouts.has(known) ? "timeout" : "unreachable", code: known, retryAfterSeconds };
    if (code === rpcTimeout && /request timed out/i.test(String(message)))
      return { how: "timeout", code: "REQUEST_TIMEOUT", retryAfterSeconds };
    if (code === rpcClosed && /connection closed/i.test(String(message)))
      return { how: "unreachable", code: "CONNECTION_CLOSED", retryAfterSeconds };
    open.push(cause, ...(Array.isArray(errors) ? errors.slice(0, 5) : []));
  }
  return null;
}
