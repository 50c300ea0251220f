import { createMcpHandler, isLegacyRequest, type McpHttpHandler } from "@modelcontextprotocol/server";
import { createSessionStore } from "../../execute/session/create-session-store.ts";
import type { Surface } from "./contract.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import { createOwnTools, createSessionSurface } from "./create-session-surface.ts";
import { createConnectedClients, refuse, type ConnectedClients, type McpCaller } from "./http/create-connected-clients.ts";
import { readMessage } from "./http/read-message.ts";
import type { McpParts } from "./mcp-parts.ts";
import { createSessionRegistry } from "./sessions/create-session-registry.ts";
import { accessByConnection, accessByHandle, type SessionAccess } from "./sessions/session-access.ts";

export type { McpCaller } from "./http/create-connected-clients.ts";

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
  const registry = createSessionRegistry(parts);
  const states = parts.sessions ?? createSessionStore({ configuration: {} });
  const own = createOwnTools(parts);

  async function serverFor(access: SessionAccess, tenant: string): Promise<ReturnType<typeof createMcpServer>> {
    return createMcpServer(extend(await createSessionSurface(parts, { registry, access, tenant, own })));
  }

  /** Clients of 2025 have a session that the transport keeps. */
  const connected: ConnectedClients = createConnectedClients({
    registry,
    onError,
    openServer: (session, caller) => {
      const { tenant } = session;
      return serverFor(accessByConnection({ registry, states, tenant, tokenHash: () => caller().tokenHash ?? null }, session), tenant);
    },
  });

  /** Clients of 2026 have none: each request stands alone, and a handle in it names the session. */
  const stateless: McpHttpHandler = createMcpHandler(
    ({ authInfo }) => {
      const { tenant, tokenHash = null } = authInfo!.extra!["caller"] as McpCaller;
      return serverFor(accessByHandle({ registry, states, tenant, tokenHash: () => tokenHash }), tenant);
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
      if (message === null) return refuse(413, -32_000, `A message may have ${MAX_BODY_BYTES} bytes, and this one has more.`);
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
