import { AsyncLocalStorage } from "node:async_hooks";
import { createMcpHandler, isLegacyRequest, type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { type ErrorCode, lookUpError } from "../../errors/error-table.ts";
import { createIdentityStore } from "../../execute/identity/create-identity-store.ts";
import { isRecord } from "../../text/json.ts";
import { accessByConnection, accessByHandle, type ConnectionAccess } from "../mcp/connections/connection-access.ts";
import { ConnectionRegistry } from "../mcp/connections/connection-registry.ts";
import type { McpConnection } from "../mcp/connections/mcp-connection.ts";
import { createMcpServer } from "../mcp/create-mcp-server.ts";
import { createSurface } from "../mcp/create-surface.ts";
import type { McpCaller, McpParts } from "../mcp/mcp-parts.ts";
import { PausedCalls } from "../mcp/paused-calls.ts";
import type { Surface } from "../mcp/surface.ts";
import { createMcpTools } from "../mcp/tools/create-mcp-tools.ts";
import { readJsonBytes, watchBody } from "./routes/route.ts";

/** Serves `/mcp` over streamable HTTP, in both versions of the protocol. The caller must check tokens and origins first. */
export interface McpEndpoint extends AsyncDisposable {
  fetch(request: Request, caller: McpCaller): Promise<Response>;
  /** Number of open connections of all tenants. */
  readonly connections: number;
  close(): Promise<void>;
}

export interface McpEndpointOptions {
  /** Changes what a client is served, for example to add tools. */
  readonly extend?: ((surface: Surface) => Surface) | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Large enough for data that a client sends to `store_data`. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

export function createMcpEndpoint(
  parts: McpParts,
  { extend = (surface) => surface, onError = () => {} }: McpEndpointOptions = {},
): McpEndpoint {
  const registry = new ConnectionRegistry(parts);
  const pausedCalls = new PausedCalls(parts);
  const identities = parts.identities ?? createIdentityStore({ configuration: {} });
  const ownTools = createMcpTools(parts);

  async function createServer(access: ConnectionAccess, caller: () => McpCaller): Promise<Server> {
    const surface = extend(await createSurface(parts, { registry, access, tenant: caller().tenant, ownTools }));
    return createMcpServer({ surface, caller, pausedCalls });
  }

  const legacyClients = new LegacyClients({
    registry,
    onError,
    createServer: (connection, caller) => {
      const { tenant } = connection;
      return createServer(
        accessByConnection({ registry, identities, tenant, subject: () => caller().subject ?? null }, connection),
        caller,
      );
    },
  });

  /** Clients of protocol 2026 are stateless: a handle in the arguments of a call names the connection. */
  const stateless = createMcpHandler(
    ({ authInfo }) => {
      const caller = authInfo!.extra!["caller"] as McpCaller;
      const { tenant, subject = null } = caller;
      return createServer(accessByHandle({ registry, identities, tenant, subject: () => subject }), () => caller);
    },
    { legacy: "reject", onerror: onError },
  );

  async function close(): Promise<void> {
    pausedCalls[Symbol.dispose]();
    await Promise.all([stateless.close(), legacyClients.close()]);
    await registry[Symbol.asyncDispose]();
  }

  return {
    async fetch(request, caller) {
      const message = await readMessage(request, MAX_BODY_BYTES);
      if (message === null) return refuse("BODY_TOO_LARGE", -32_000, `The message is larger than the limit of ${MAX_BODY_BYTES} bytes.`);
      if (await isLegacyRequest(message.request, message.body)) return await legacyClients.fetch(message, caller);
      const authInfo = { token: "", clientId: caller.tenant, scopes: [], extra: { caller } };
      return await stateless.fetch(message.request, { authInfo, parsedBody: message.body });
    },
    get connections() {
      return registry.size;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface LegacyClientsOptions {
  readonly registry: ConnectionRegistry;
  readonly onError: (error: Error) => void;
  createServer(connection: McpConnection, caller: () => McpCaller): Promise<Server>;
}

interface LegacyClient {
  readonly connection: McpConnection;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: Server;
  openStreams: number;
}

type RequestId = string | number;

/** Clients of the 2025 protocol: `initialize` opens a connection, the header `Mcp-Session-Id` names it, DELETE or idleness closes it. */
class LegacyClients {
  readonly #options: LegacyClientsOptions;
  readonly #clients = new Map<string, LegacyClient>();
  /** The sender of the request that is being handled. Requests of one client run at the same time, and their tokens can differ. */
  readonly #caller = new AsyncLocalStorage<McpCaller>();

  constructor(options: LegacyClientsOptions) {
    this.#options = options;
  }

  async fetch(message: ReadMessage, caller: McpCaller): Promise<Response> {
    return await this.#caller.run(caller, () => this.#fetch(message, caller));
  }

  async #fetch(message: ReadMessage, caller: McpCaller): Promise<Response> {
    const { isInitialize, ids } = readRequests(message.body);
    const id = message.request.headers.get("mcp-session-id");
    if (id === null && !isInitialize) return refuse("REQUEST_INVALID", -32_000, sessionIdMissing);
    const client = id === null ? await this.#open(caller) : this.#find(id, caller);
    if (client === null) return refuse("NOT_FOUND", -32_001, sessionNotFound);
    const response = await this.#serve(client, message, ids);
    if (id === null && response.status >= 400) await this.#end(client.connection.id); // initialize failed
    return response;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.keys()].map((id) => this.#end(id)));
  }

  async #open(caller: McpCaller): Promise<LegacyClient> {
    const { registry, createServer } = this.#options;
    const { tenant, subject = null } = caller;
    const connection = registry.open({ tenant, subject, onExpired: () => void this.#end(connection.id) });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => connection.id,
      onsessionclosed: (id) => this.#end(id),
    });
    const server = await createServer(connection, () => this.#caller.getStore() ?? { tenant });
    const client: LegacyClient = { connection, transport, server, openStreams: 0 };
    this.#clients.set(connection.id, client);
    await server.connect(transport);
    return client;
  }

  #find(id: string, { tenant }: McpCaller): LegacyClient | null {
    const client = this.#clients.get(id);
    return client?.connection.tenant === tenant ? client : null;
  }

  async #end(id: string): Promise<void> {
    const client = this.#clients.get(id);
    if (client === undefined) return;
    this.#clients.delete(id);
    await client.server.close().catch(this.#options.onError);
    await this.#options.registry.close(client.connection);
  }

  async #serve(client: LegacyClient, { request, body }: ReadMessage, ids: readonly RequestId[]): Promise<Response> {
    const endUse = this.#options.registry.use(client.connection);
    const response = await client.transport.handleRequest(request, { parsedBody: body });
    if (response.body === null || !isEventStream(response)) {
      endUse();
      return response;
    }
    client.openStreams += 1;
    if (ids.length === 0) endUse(); // a stream that only listens must not keep an idle connection open
    return watchBody(response, (wasCancelled) => {
      client.openStreams -= 1;
      endUse();
      if (wasCancelled) this.#cancelRequests(client, ids);
    });
  }

  /** The client closed the stream: cancels the requests that it no longer waits for. */
  #cancelRequests(client: LegacyClient, ids: readonly RequestId[]): void {
    const reason = "the client closed the connection";
    for (const requestId of ids)
      client.transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } });
    if (client.openStreams === 0) this.#options.registry.markDisconnected(client.connection);
  }
}

function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/event-stream") === true;
}

const sessionNotFound = "Session not found: it ended or was idle for too long. Send initialize to start a new one.";
const sessionIdMissing =
  "The header Mcp-Session-Id is missing. Send initialize first, then send the Mcp-Session-Id of its response with every request.";

/** A JSON-RPC error, with the HTTP status of `error`. */
function refuse(error: ErrorCode, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status: lookUpError(error).status });
}

/** A request whose body has been read. */
interface ReadMessage {
  /** Its body is still readable if it is not JSON, so that the SDK can report the parse error. */
  readonly request: Request;
  /** The parsed JSON; undefined if there is no body or it is not JSON. */
  readonly body: unknown;
}

/** Reads the body of a POST. Returns null when it is larger than `maxBytes`. Throws REQUEST_INVALID for one that would take too long to parse. */
async function readMessage(request: Request, maxBytes: number): Promise<ReadMessage | null> {
  if (request.method !== "POST" || request.body === null) return { request, body: undefined };
  const bytes = await readJsonBytes(request, maxBytes);
  if (bytes === null) return null;
  const text = bytes.toString("utf8");
  try {
    return { request, body: JSON.parse(text) };
  } catch {
    const { method, headers, signal } = request;
    return { request: new Request(request.url, { method, headers, signal, body: text }), body: undefined };
  }
}

function readRequests(body: unknown): { readonly isInitialize: boolean; readonly ids: readonly RequestId[] } {
  const messages = (Array.isArray(body) ? body : [body]).filter(isRecord);
  return {
    isInitialize: messages.some(({ method }) => method === "initialize"),
    ids: messages.flatMap(({ id, method }) =>
      typeof method === "string" && (typeof id === "string" || typeof id === "number") ? [id] : [],
    ),
  };
}
