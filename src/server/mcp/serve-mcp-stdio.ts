import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createIdentityStore } from "../../execute/identity/create-identity-store.ts";
import { createMcpServer } from "./create-mcp-server.ts";
import { createSurface } from "./create-surface.ts";
import type { McpParts } from "./mcp-parts.ts";
import { PausedCalls } from "./paused-calls.ts";
import { ConnectionRegistry } from "./connections/connection-registry.ts";
import { accessByConnection } from "./connections/connection-access.ts";
import type { Surface } from "./surface.ts";
import { createMcpTools } from "./tools/create-mcp-tools.ts";

export interface McpStdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly signal: AbortSignal;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Large enough for data that a client sends to `store_data`. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const tenant = "local";

/** Serves one client on one connection. Resolves when the client disconnects or `signal` aborts, after everything is closed. */
export async function serveMcpStdio(parts: McpParts, { input, output, signal, onError = () => {} }: McpStdioOptions): Promise<void> {
  await using registry = new ConnectionRegistry(parts);
  using pausedCalls = new PausedCalls(parts);
  const connection = registry.open({ tenant, subject: null, isPermanent: true });
  const identities = parts.identities ?? createIdentityStore({ configuration: {} });
  const access = accessByConnection({ registry, identities, tenant, subject: () => null }, connection);
  const ownTools = createMcpTools(parts);
  const transport = new ObservableTransport(input, output, { maxBufferSize: MAX_MESSAGE_BYTES });
  const surface = async (): Promise<Surface> => await createSurface(parts, { registry, access, tenant, ownTools });
  const handle = serveStdio(async () => createMcpServer({ surface: await surface(), caller: () => ({ tenant }), pausedCalls }), {
    transport,
    onerror: onError,
  });
  const stop = (): void => void handle.close().catch(onError);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await transport.closed;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The SDK's transport, with a promise that resolves when it closes: by the client, by us, or after a message that is too large. */
class ObservableTransport extends StdioServerTransport {
  readonly #closed = Promise.withResolvers<void>();

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#closed.resolve();
  }
}
