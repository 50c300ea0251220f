import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createIdentityStore } from "../../execute/identity/create-identity-store.ts";
import { createMcpServer, createConnectionSurface } from "./create-mcp-server.ts";
import type { McpParts } from "./mcp-parts.ts";
import { ConnectionRegistry } from "./connections/connection-registry.ts";
import { accessByConnection } from "./connections/connection-access.ts";
import { createMcpTools } from "./tools/create-mcp-tools.ts";

export interface McpStdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly signal: AbortSignal;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** A message of a client may hold data for `store_data`. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const tenant = "local";

/** One client, one session. Resolves when the client is gone or `signal` says so, and nothing of it is left. */
export async function serveMcpStdio(parts: McpParts, { input, output, signal, onError = () => {} }: McpStdioOptions): Promise<void> {
  await using registry = new ConnectionRegistry(parts);
  const session = registry.open({ tenant, isPermanent: true });
  const identities = parts.identities ?? createIdentityStore({ configuration: {} });
  const access = accessByConnection({ registry, identities, tenant, tokenHash: () => null }, session);
  const own = createMcpTools(parts);
  const transport = new ClosingTransport(input, output, { maxBufferSize: MAX_MESSAGE_BYTES });
  const handle = serveStdio(async () => createMcpServer(await createConnectionSurface(parts, { registry, access, tenant, own })), {
    transport,
    onerror: onError,
  });
  const stop = (): void => void handle.close().catch(onError);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await transport.over;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The transport of the SDK, which says when it is over: by the client, by us, or because of a message that is too large. */
class ClosingTransport extends StdioServerTransport {
  readonly #over = Promise.withResolvers<void>();

  get over(): Promise<void> {
    return this.#over.promise;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#over.resolve();
  }
}
