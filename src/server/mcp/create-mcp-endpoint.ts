import { createMcpHandler, isLegacyRequest, type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { createIdentityStore } from "../../execute/identity/create-identity-store.ts";
import type { McpParts, Surface } from "./mcp-parts.ts";
import { createMcpServer, createConnectionSurface } from "./create-mcp-server.ts";
import { ConnectionRegistry } from "./connections/connection-registry.ts";
import { accessByConnection, accessByHandle, type ConnectionAccess } from "./connections/connection-access.ts";
import { createMcpTools } from "./tools/create-mcp-tools.ts";
import type { McpConnection } from "./connections/open-mcp-connection.ts";
import { readBody, watchBody } from "../../concurrency/watch-body.ts";
import { type ErrorCode, lookUpError } from "../../errors/error-table.ts";
import { isRecord } from "../../errors/is-record.ts";

/** `/mcp` over streamable HTTP, in both versions of the protocol. It checks neither tokens nor origins: that was done before. */
export interface McpEndpoint extends AsyncDisposable {
  fetch(request: Request, caller: McpCaller): Promise<Response>;
  /** Sessions that are kept, of all tenants. */
  readonly sessions: number;
  close(): Promise<void>;
}

export interface McpEndpointOptions {
  /** What a client is shown, made from what it would be shown. */
  readonly extend?: ((surface: Surface) => Surface) | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** A message of a client may hold data for `store_data`. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

export function createMcpEndpoint(
  parts: McpParts,
  { extend = (surface) => surface, onError = () => {} }: McpEndpointOptions = {},
): McpEndpoint {
  const registry = new ConnectionRegistry(parts);
  const identities = parts.identities ?? createIdentityStore({ configuration: {} });
  const own = createMcpTools(parts);

  async function serverFor(access: ConnectionAccess, tenant: string): Promise<ReturnType<typeof createMcpServer>> {
    return createMcpServer(extend(await createConnectionSurface(parts, { registry, access, tenant, own })));
  }

  /** Clients of 2025 have a session that the transport keeps. */
  const connected = createConnectedClients({
    registry,
    onError,
    openServer: (session, caller) => {
      const { tenant } = session;
      return serverFor(accessByConnection({ registry, identities, tenant, tokenHash: () => caller().tokenHash ?? null }, session), tenant);
    },
  });

  /** Clients of 2026 have none: each request stands alone, and a handle in it names the session. */
  const stateless = createMcpHandler(
    ({ authInfo }) => {
      const { tenant, tokenHash = null } = authInfo!.extra!["caller"] as McpCaller;
      return serverFor(accessByHandle({ registry, identities, tenant, tokenHash: () => tokenHash }), tenant);
    },
    { legacy: "reject", onerror: onError },
  );

  async function close(): Promise<void> {
    await Promise.all([stateless.close(), connected.close()]);
    await registry[Symbol.asyncDispose]();
  }

  return {
    async fetch(request, caller) {
      const message = await readMessage(request, MAX_BODY_BYTES);
      if (message === null) return refuse("BODY_TOO_LARGE", -32_000, `A message may have ${MAX_BODY_BYTES} bytes, and this one has more.`);
      if (await isLegacyRequest(message.request, message.body)) return await connected.fetch(message, caller);
      const authInfo = { token: "", clientId: caller.tenant, scopes: [], extra: { caller } };
      return await stateless.fetch(message.request, { authInfo, parsedBody: message.body });
    },
    get sessions() {
      return registry.size;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Who a request comes from, as whoever checked its token knows. */
export interface McpCaller {
  readonly tenant: string;
  /** Of the bearer token: another one in the same session clears what was chosen with the first. */
  readonly tokenHash?: string | null | undefined;
}

interface ConnectedClientsOptions {
  readonly registry: ConnectionRegistry;
  readonly onError: (error: Error) => void;
  openServer(session: McpConnection, caller: () => McpCaller): Promise<Server>;
}

interface ConnectedClient {
  readonly session: McpConnection;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: Server;
  /** Of the latest request: its token may be another than the first one's. */
  caller: McpCaller;
  streams: number;
}

/** Clients of the 2025 versions: `initialize` opens a session, `Mcp-Session-Id` names it, DELETE or idleness ends it. */
function createConnectedClients({ registry, onError, openServer }: ConnectedClientsOptions) {
  const clients = new Map<string, ConnectedClient>();

  async function open(caller: McpCaller): Promise<ConnectedClient> {
    const session = registry.open({ tenant: caller.tenant, onExpired: () => void end(session.id) });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => session.id,
      onsessionclosed: (id) => end(id),
    });
    const server = await openServer(session, () => client.caller);
    const client: ConnectedClient = { session, transport, server, caller, streams: 0 };
    clients.set(session.id, client);
    await server.connect(transport);
    return client;
  }

  async function end(id: string): Promise<void> {
    const client = clients.get(id);
    if (client === undefined) return;
    clients.delete(id);
    await client.server.close().catch(onError);
    await registry.end(client.session);
  }

  function find(request: Request, { tenant }: McpCaller): ConnectedClient | null {
    const client = clients.get(request.headers.get("mcp-session-id") ?? "");
    return client?.session.tenant === tenant ? client : null;
  }

  async function serve(client: ConnectedClient, { request, body }: ReadMessage, ids: readonly (string | number)[]): Promise<Response> {
    const leave = registry.use(client.session);
    const response = await client.transport.handleRequest(request, { parsedBody: body });
    if (response.body === null || !isStream(response)) {
      leave();
      return response;
    }
    client.streams += 1;
    const isWaiting = ids.length > 0;
    if (!isWaiting) leave(); // a stream that only listens does not keep an idle session
    return watchBody(response, (wasCancelled) => {
      client.streams -= 1;
      leave();
      if (wasCancelled) lost(client, ids);
    });
  }

  /** Nobody will read the answers: what runs for them is ended, and the sandbox goes unless the client comes back. */
  function lost(client: ConnectedClient, ids: readonly (string | number)[]): void {
    const reason = "the client closed the connection";
    for (const requestId of ids)
      client.transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } });
    if (client.streams === 0) registry.lost(client.session);
  }

  return {
    async fetch(message: ReadMessage, caller: McpCaller): Promise<Response> {
      const { request } = message;
      const { isInitialize, ids } = requestIdsOf(message.body);
      const hasSession = request.headers.has("mcp-session-id");
      const client = hasSession ? find(request, caller) : isInitialize ? await open(caller) : null;
      if (client === null)
        return hasSession ? refuse("NOT_FOUND", -32_001, sessionNotFound) : refuse("REQUEST_INVALID", -32_000, sessionMissing);
      client.caller = caller;
      const response = await serve(client, message, ids);
      if (!hasSession && response.status >= 400) await end(client.session.id); // it never began
      return response;
    },
    async close() {
      await Promise.all([...clients.keys()].map(end));
    },
  };
}

function isStream(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/event-stream") === true;
}

const sessionNotFound = "Session not found: it ended, or was not used for too long. Send initialize to begin a new one.";
const sessionMissing = "Mcp-Session-Id is missing. Send initialize first, and its answer's Mcp-Session-Id with every later request.";

/** An error of JSON-RPC, with the HTTP status of `error`. */
function refuse(error: ErrorCode, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status: lookUpError(error).status });
}

/** A request whose body was read once for all who look into it. */
interface ReadMessage {
  /** To go on with: where the body is no JSON it can be read again, by who says what is wrong with it. */
  readonly request: Request;
  /** Undefined for none, and for what is no JSON. */
  readonly body: unknown;
}

/** The message of a POST. Null when it is larger than it may be. */
async function readMessage(request: Request, maxBytes: number): Promise<ReadMessage | null> {
  if (request.method !== "POST" || request.body === null) return { request, body: undefined };
  const bytes = await readBody(request, maxBytes);
  if (bytes === null) return null;
  const text = bytes.toString("utf8");
  try {
    return { request, body: JSON.parse(text) };
  } catch {
    const { method, headers, signal } = request;
    return { request: new Request(request.url, { method, headers, signal, body: text }), body: undefined };
  }
}

/** What a message asks. */
function requestIdsOf(body: unknown): { readonly isInitialize: boolean; readonly ids: readonly (string | number)[] } {
  const messages = (Array.isArray(body) ? body : [body]).filter(isRecord);
  return {
    isInitialize: messages.some(({ method }) => method === "initialize"),
    ids: messages.flatMap(({ id, method }) =>
      typeof method === "string" && (typeof id === "string" || typeof id === "number") ? [id] : [],
    ),
  };
}
