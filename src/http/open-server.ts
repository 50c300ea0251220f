import type { Server } from "node:http";
import path from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { bundledSample } from "../config/bundled-sample.ts";
import type { Environment, LoadedConfiguration } from "../config/contract.ts";
import { openConfigured, type Configured } from "../configured/open-configured.ts";
import { createTables } from "../data/tables/create-tables.ts";
import { createUploadStore } from "../data/uploads/create-upload-store.ts";
import { openHistory } from "../history/open-history.ts";
import { createMcpEndpoint } from "../mcp/server/create-mcp-endpoint.ts";
import { packageVersion } from "../package-version.ts";
import { acceptedTokens, type TokenSource } from "./auth/accepted-tokens.ts";
import { createAuthenticator } from "./auth/create-authenticator.ts";
import { createConversations } from "./conversations/create-conversations.ts";
import { createApp } from "./create-app.ts";
import { slowClientRules, watchSlowClients, type SlowClientRules } from "./guard/watch-slow-clients.ts";
import { listen } from "./listen.ts";
import { lockDirectory } from "./lock-directory.ts";
import type { Log } from "./log/create-log.ts";
import { createMetrics } from "./metrics/create-metrics.ts";
import { createPage } from "./page/create-page.ts";
import { keepPruned } from "./retention/keep-pruned.ts";
import { allRoutes } from "./routes/all-routes.ts";
import { samplesFor } from "./samples.ts";
import type { ServerParts } from "./server-parts.ts";
import { serveModel } from "./serve-model.ts";
import { createTenantStores } from "./stores/create-tenant-stores.ts";
import { toClientSnippet } from "./to-client-snippet.ts";
import { createTurnGate } from "./turns/create-turn-gate.ts";
import { createTurns } from "./turns/create-turns.ts";

export interface ServerOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** Lets everybody in. */
  readonly isOpen?: boolean;
  /** Instead of the configuration's. */
  readonly model?: string | undefined;
  readonly log: Log;
  readonly workingDirectory?: string;
  /** Where the built page is; that of the package unless told. */
  readonly pageDirectory?: string;
  readonly slowClients?: SlowClientRules;
  /** How long a turn that somebody was listening to goes on without a listener. */
  readonly unattendedMs?: number;
  readonly signal?: AbortSignal;
}

/** A server that listens. Closing it lets turns come to an end, and leaves nothing behind. */
export interface RunningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly driver: string;
  readonly model: { readonly name: string | null; readonly problem: string | null };
  readonly tokens: TokenSource;
  /** One for each tenant. */
  readonly loginLinks: readonly { readonly tenant: string; readonly url: string }[];
  readonly snippet: string;
  readonly configured: Configured;
  readonly parts: ServerParts;
  close(): Promise<void>;
}

const UNATTENDED_MS = 30_000;

export async function openServer(options: ServerOptions): Promise<RunningServer> {
  const { loaded, environment, log, host, isOpen = false } = options;
  const { configuration } = loaded;
  const { directory } = configuration.artifacts;
  await using cleanup = new AsyncDisposableStack();
  cleanup.use(lockDirectory(directory));
  const history = cleanup.use(openHistory({ file: path.join(directory, "history.sqlite") }));
  const recovered = history.recover(new Date().toISOString());
  if (recovered.length > 0) log.warn("turns_recovered", { turns: recovered.length });

  const sample = loaded.path === null ? bundledSample() : undefined;
  let probe = (_line: string): void => {};
  const configured = cleanup.use(
    openConfigured({
      loaded,
      environment,
      servers: sample,
      workingDirectory: options.workingDirectory,
      onProbe: (line) => probe(line),
    }),
  );
  const { runtime } = configured;
  const driver = await runtime.driver(options.signal); // without a sandbox nothing is served
  let pool: Awaited<ReturnType<typeof runtime.pool>> | null = null;
  runtime.pool().then(
    (opened) => (pool = opened),
    (error: unknown) => log.error("pool_failed", { reason: (error as Error).message }),
  );

  const gate = createTurnGate(configuration.server);
  const metrics = createMetrics({ gate: runtime.gate, pool: () => pool, turns: () => gate });
  probe = metrics.probe;
  const kindOf = (type: string): string => (type === "png" ? "image" : "chart");
  const storesOf = createTenantStores({
    directory,
    history,
    onArtifact: ({ type, bytes }) => {
      metrics.artifacts.add(1, { kind: kindOf(type) });
      metrics.artifactBytes.add(bytes, { kind: kindOf(type) });
    },
  });
  const tables = createTables({ openSession: runtime.openSession, gate: runtime.gate });
  cleanup.use(tables);
  const uploads = createUploadStore({ directory: path.join(directory, "uploads"), maxBytes: configuration.server.uploadBytes });
  const conversations = createConversations({ history, storesOf, tables, uploads, budgets: configuration.budgets, log });
  const model = await serveModel({ configured, named: options.model, isBundledSample: sample !== undefined });
  const turns = createTurns({
    configured,
    model: () => model.open(),
    history,
    conversations,
    storesOf,
    gate,
    unattendedMs: options.unattendedMs ?? UNATTENDED_MS,
    log,
    onEvent: (event) => metrics.onTurnEvent(event),
  });
  const mcp = createMcpEndpoint(
    { ...configured, tables, storesOf, onProbe: metrics.probe },
    { onError: (error) => log.warn("mcp", { reason: error.message }) },
  );
  cleanup.defer(() => mcp.close());

  const tokens = isOpen ? { tokens: [], made: null } : await acceptedTokens({ configured: configuration.auth.tokens, directory });
  // The port is known once it listens, and it listens once it can answer: nobody comes in between.
  const ready = Promise.withResolvers<(request: Request) => Response | Promise<Response>>();
  const server = createAdaptorServer({ fetch: async (request: Request) => (await ready.promise)(request), serverOptions }) as Server;
  const port = await listen(server, { host, port: options.port });
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const authenticator = createAuthenticator({ tokens: tokens.tokens, sessions: history.sessions, port, isOpen });
  const parts: ServerParts = {
    configured,
    model,
    history,
    storesOf,
    tables,
    uploads,
    conversations,
    gate,
    turns,
    authenticator,
    metrics,
    log,
    mcp,
    version: packageVersion,
    startedAt: new Date().toISOString(),
    url,
    samples: samplesFor({ model: model.name, isBundledSample: sample !== undefined }),
    selfTest: null,
  };
  const snippet = toClientSnippet({ url, token: isOpen ? null : (tokens.made ?? "YOUR TOKEN") });
  const page = createPage({
    directory: options.pageDirectory ?? path.join(import.meta.dirname, "../../dist/web"),
    describe: async () => ({
      facts: [
        ["address", url],
        ["sandbox", driver.name],
        ["model", model.name ?? model.problem ?? "none"],
        ["servers", [...configured.sources.keys()].join(", ") || "none"],
      ],
      snippet: toClientSnippet({ url, token: isOpen ? null : "YOUR TOKEN" }),
    }),
  });
  const origins = { allowedHosts: configuration.server.allowedHosts };
  const app = createApp({ routes: allRoutes(parts), authenticator, origins, log, metrics, page });
  ready.resolve((request) => app.fetch(request));
  const watch = watchSlowClients(server, options.slowClients ?? slowClientRules, () => {
    metrics.slowClients.add();
    log.warn("slow_client_cut");
  });
  const pruning = keepPruned(parts);

  const rest = cleanup.move();
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => (closing ??= end());

  async function end(): Promise<void> {
    log.info("stopping", { running: gate.running, queued: gate.queued });
    pruning[Symbol.dispose]();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await turns.drain(configuration.server.drainMs);
    server.closeIdleConnections();
    await rest.disposeAsync();
    watch[Symbol.dispose]();
    server.closeAllConnections();
    await closed;
    log.info("stopped");
  }

  const loginLinks = isOpen
    ? []
    : [...new Map(tokens.tokens.map((one) => [one.tenant, one])).values()].map(({ tenant, isOperator }) => ({
        tenant,
        url: `${url}/login?code=${authenticator.newLoginCode({ tenant, isOperator }).code}`,
      }));
  log.info("listening", { url, driver: driver.name, model: model.name, auth: authenticator.mode });
  return { url, port, driver: driver.name, model, tokens, loginLinks, snippet, configured, parts, close, [Symbol.asyncDispose]: close };
}

/** A request must be there whole within ten minutes, its head at once. */
const serverOptions = { requestTimeout: 10 * 60_000, headersTimeout: 20_000, keepAliveTimeout: 5_000, maxHeaderSize: 16_384 };
