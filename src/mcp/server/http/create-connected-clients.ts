import { WebStandardStreamableHTTPServerTransport, type Server } from "@modelcontextprotocol/server";
import type { SessionRegistry } from "../sessions/create-session-registry.ts";
import type { McpSession } from "../sessions/open-mcp-session.ts";
import { requestIdsOf, type ReadMessage } from "./read-message.ts";
import { watchBody } from "../../../waiting/watch-body.ts";

/** Who a request comes from, as whoever checked its token knows. */
export interface McpCaller {
  readonly tenant: string;
  /** Of the bearer token: another one in the same session clears what was chosen with the first. */
  readonly tokenHash?: string | null | undefined;
}

/** Clients of the 2025 versions: `initialize` opens a session, `Mcp-Session-Id` names it, DELETE or idleness ends it. */
export interface ConnectedClients {
  fetch(message: ReadMessage, caller: McpCaller): Promise<Response>;
  close(): Promise<void>;
}

export interface ConnectedClientsOptions {
  readonly registry: SessionRegistry;
  readonly onError: (error: Error) => void;
  openServer(session: McpSession, caller: () => McpCaller): Promise<Server>;
}

interface ConnectedClient {
  readonly session: McpSession;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: Server;
  /** Of the latest request: its token may be another than the first one's. */
  caller: McpCaller;
  streams: number;
}

export function createConnectedClients({ registry, onError, openServer }: ConnectedClientsOptions): ConnectedClients {
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
    async fetch(message, caller) {
      const { request } = message;
      const { isInitialize, ids } = requestIdsOf(message.body);
      const hasSession = request.headers.has("mcp-session-id");
      const client = hasSession ? find(request, caller) : isInitialize ? await open(caller) : null;
      if (client === null) return hasSession ? refuse(404, -32_001, sessionNotFound) : refuse(400, -32_000, sessionMissing);
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

export function refuse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}
