import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import path from "node:path";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { Environment } from "../../config/environment.ts";
import type { LoadedConfiguration } from "../../config/load-configuration.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { Authenticator, configuredTenants, loadTokens, type ServerTokens } from "./authenticator.ts";
import { defaultSlowClientRules, type SlowClientRules, watchSlowClients } from "./client-limits.ts";
import { Connections, readMaxOpenFiles, toConnectionLimits } from "./connections.ts";
import { createApp } from "./create-app.ts";
import type { Log } from "./create-log.ts";
import { createPage, type ServerDescription } from "./create-page.ts";
import { LoginCodes } from "./login-codes.ts";
import { createLoginLink, publishUrl } from "./login-link.ts";
import { openParts, type ServerParts } from "./open-parts.ts";
import { pruneHourly } from "./prune.ts";
import { allRoutes } from "./routes/all-routes.ts";
import { searchUnreadable } from "./search-unreadable.ts";

export interface ServerOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The address that clients use (`https://sluice.example`). Overrides the configuration. */
  readonly publicUrl?: string | undefined;
  /** Accepts requests without a token. */
  readonly isOpen?: boolean;
  /** Overrides the configuration. */
  readonly model?: string | undefined;
  readonly log: Log;
  readonly workingDirectory?: string;
  /** The built page; default: the one of the package. */
  readonly pageDirectory?: string;
  readonly slowClients?: SlowClientRules;
  /** How long a chat turn goes on without a listener. */
  readonly unattendedMs?: number;
  readonly signal?: AbortSignal;
}

/** A server that listens. `close` lets running turns end, then removes all sandboxes and run directories. */
export interface RunningServer extends AsyncDisposable {
  /** The address on which it listens. */
  readonly url: string;
  readonly publicUrl: string | null;
  readonly port: number;
  readonly driver: string;
  readonly model: { readonly name: string | null; readonly problem: string | null };
  readonly tokens: ServerTokens;
  /** In the order of the configuration. */
  readonly tenants: readonly string[];
  /** Creates a one-time link for a browser; default: for the first tenant. */
  createLoginLink(tenant?: string): string;
  /** Configuration of a desktop client. */
  readonly snippet: string;
  readonly parts: ServerParts;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Opens all parts, listens and serves. Throws before it listens if the sandbox, the history or the configuration cannot be used. */
export async function openServer(options: ServerOptions): Promise<RunningServer> {
  const { log, isOpen = false, loaded } = options;
  const { auth, artifacts, server: rules } = loaded.configuration;
  await using cleanup = new AsyncDisposableStack();
  const opened = await openParts(options, cleanup);
  const tokens = isOpen ? { accepted: [], generated: null } : await loadTokens(auth.tokens, artifacts.directory);
  const connectionLimits = toConnectionLimits(readMaxOpenFiles());
  const { server, port, answerWith } = await startListening(options, connectionLimits.maxStrangers);
  const url = `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`;
  const givenUrl = options.publicUrl ?? rules.publicUrl;
  const publicUrl = givenUrl === undefined ? null : new URL(givenUrl).origin;
  const isSecure = publicUrl?.startsWith("https:") ?? false;
  const codes = new LoginCodes({ directory: artifacts.directory });
  const authenticator = new Authenticator({ tokens: tokens.accepted, logins: opened.history.logins, codes, port, isOpen, isSecure });
  const parts: ServerParts = { ...opened, authenticator, url: publicUrl ?? url, publicUrl };
  if (!isOpen) cleanup.use(publishUrl(artifacts.directory, parts.url));
  const driver = (await parts.configured.runtime.driver()).name;
  const connections = new Connections(server, connectionLimits, () => parts.metrics.connectionsCut.add());
  const handler = createHandler(parts, options, { driver, onIdentified: (request, tenant) => connections.identify(request, tenant) });
  answerWith((request, socket) => {
    connections.register(request, socket);
    return handler(request);
  });
  const slowClientWatch = watchSlowClients(server, options.slowClients ?? defaultSlowClientRules, () => {
    parts.metrics.slowClients.add();
    log.warn("slow_client_cut");
  });
  const pruning = pruneHourly(parts);
  const search = searchUnreadable(parts);
  const partsCleanup = cleanup.move();

  /** Gives turns and requests `server.drainMs` to end, then closes everything. */
  async function stop(): Promise<void> {
    const { turns, turnLimiter, workLimiter } = parts;
    log.info("stopping", { running: turnLimiter.taken, queued: turnLimiter.waiting });
    pruning[Symbol.dispose]();
    search[Symbol.dispose]();
    await Promise.all([turns.drain(rules.drainMs), orAbort(workLimiter.stop(), AbortSignal.timeout(rules.drainMs)).catch(() => {})]);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await partsCleanup.disposeAsync();
    slowClientWatch[Symbol.dispose]();
    connections[Symbol.dispose]();
    server.closeAllConnections();
    await closed;
    log.info("stopped");
  }

  let stopped: Promise<void> | null = null;
  const close = (): Promise<void> => (stopped ??= stop());
  log.info("listening", { url, publicUrl: publicUrl ?? undefined, driver, model: parts.model.name, auth: authenticator.mode });
  return {
    url,
    publicUrl,
    port,
    driver,
    model: parts.model,
    tokens,
    tenants: configuredTenants(auth.tokens),
    createLoginLink: (tenant) => createLoginLink({ directory: artifacts.directory, tokens: auth.tokens, tenant }).url,
    snippet: toClientSnippet({ url: parts.url, token: isOpen ? null : (tokens.generated ?? "YOUR TOKEN") }),
    parts,
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Handler = (request: Request, socket: Socket) => Response | Promise<Response>;

function createHandler(
  parts: ServerParts,
  { isOpen = false, pageDirectory = builtPage, loaded }: ServerOptions,
  { driver, onIdentified }: { driver: string } & Pick<Parameters<typeof createApp>[0], "onIdentified">,
): (request: Request) => Response | Promise<Response> {
  const { allowedHosts } = loaded.configuration.server;
  const page = createPage({ directory: pageDirectory, server: describeServer(parts, { driver, isOpen }) });
  const origins = { allowedHosts, publicUrl: parts.publicUrl };
  return createApp({ ...parts, onIdentified, routes: allRoutes(parts), origins, page }).fetch;
}

const builtPage = path.join(import.meta.dirname, "../../../dist/web");

/** The handler depends on the port, which is known once the server listens. Requests that arrive before `answerWith` wait. */
async function startListening({ host, port }: { host: string; port: number }, backlog: number) {
  const ready = Promise.withResolvers<Handler>();
  const server = createAdaptorServer({
    fetch: async (request, env) => (await ready.promise)(request, (env as HttpBindings).incoming.socket),
    serverOptions,
  }) as Server;
  return { server, port: await listen(server, { host, port, backlog }), answerWith: ready.resolve };
}

function describeServer(
  { url, model, configured }: Pick<ServerParts, "url" | "model" | "configured">,
  { driver, isOpen }: { driver: string; isOpen: boolean },
): ServerDescription {
  return {
    facts: [
      ["address", url],
      ["sandbox", driver],
      ["model", model.name ?? model.problem ?? "none"],
      ["servers", [...configured.sources.keys()].join(", ") || "none"],
    ],
    snippet: toClientSnippet({ url, token: isOpen ? null : "YOUR TOKEN" }),
  };
}

/** A whole request may take ten minutes, its headers 10 s, also the first of a connection. */
const serverOptions = {
  requestTimeout: 10 * 60_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
};

/** Returns the port. Throws NOT_LISTENING. */
export async function listen(server: Server, { host, port, backlog }: { host: string; port: number; backlog?: number }): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, { host, port })));
    server.listen({ port, host, backlog }, resolve);
  });
  server.removeAllListeners("error");
  server.on("clientError", (_error, socket) => socket.destroy());
  return (server.address() as AddressInfo).port;
}

function cannotListen(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): UsageError {
  const reason = {
    EADDRINUSE: "the port is in use",
    EACCES: "permission denied",
    EADDRNOTAVAIL: "this machine does not have that address",
  }[error.code ?? ""];
  return new UsageError({
    code: "NOT_LISTENING",
    message: `The server cannot listen on ${host}:${port}: ${reason ?? error.message}.`,
    hint: "Choose another port with --port (0 takes any free port) or another address with --host.",
    cause: error,
  });
}

/** The entry for the configuration file of a desktop client. */
function toClientSnippet({ url, token }: { url: string; token: string | null }): string {
  const server = { url: `${url}/mcp`, ...(token === null ? {} : { headers: { Authorization: `Bearer ${token}` } }) };
  return JSON.stringify({ mcpServers: { sluice: server } }, null, 2);
}
