import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { Environment } from "../../config/environment.ts";
import type { LoadedConfiguration } from "../../config/load-configuration.ts";
import type { Configured } from "../../config/open-configured.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { acceptedTokens, createAuthenticator, type TokenSource } from "./create-authenticator.ts";
import { createApp } from "./create-app.ts";
import { slowClientRules, type SlowClientRules, watchSlowClients } from "./guard.ts";
import type { Log } from "./create-log.ts";
import { openParts, type ServerParts } from "./open-parts.ts";
import { createPage, type PageFacts } from "./create-page.ts";
import { keepPruned } from "./keep-pruned.ts";
import { allRoutes } from "./routes/all-routes.ts";

export interface ServerOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  /** What clients reach it by, instead of the configuration's: `https://sluice.example`. */
  readonly publicUrl?: string | undefined;
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
  /** Where it listens. */
  readonly url: string;
  readonly publicUrl: string | null;
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

export async function openServer(options: ServerOptions): Promise<RunningServer> {
  const { log, isOpen = false, loaded } = options;
  const { auth, artifacts, server: rules } = loaded.configuration;
  await using cleanup = new AsyncDisposableStack();
  const opened = await openParts(options, cleanup);
  const tokens = isOpen ? { tokens: [], made: null } : await acceptedTokens({ configured: auth.tokens, directory: artifacts.directory });
  const { server, port, answerWith } = await startListening(options);
  const url = `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`;
  const publicUrl = toOrigin(options.publicUrl ?? rules.publicUrl);
  const isSecure = publicUrl?.startsWith("https:") ?? false;
  const authenticator = createAuthenticator({ tokens: tokens.tokens, sessions: opened.history.logins, port, isOpen, isSecure });
  const parts: ServerParts = { ...opened, authenticator, url: publicUrl ?? url, publicUrl };
  const driver = (await parts.configured.runtime.driver()).name;
  const page = createPage({
    directory: options.pageDirectory ?? builtPage,
    describe: async () => describeServer(parts, { driver, isOpen }),
  });
  const origins = { allowedHosts: rules.allowedHosts, publicUrl };
  const app = createApp({ routes: allRoutes(parts), authenticator, origins, log, metrics: parts.metrics, work: parts.work, page });
  answerWith(app.fetch);
  const watch = watchSlowClients(server, options.slowClients ?? slowClientRules, () => {
    parts.metrics.slowClients.add();
    log.warn("slow_client_cut");
  });
  const pruning = keepPruned(parts);
  const rest = cleanup.move();

  async function end(): Promise<void> {
    log.info("stopping", { running: parts.gate.taken, queued: parts.gate.waiting });
    pruning[Symbol.dispose]();
    await Promise.all([parts.turns.drain(rules.drainMs), orAbort(parts.work.stop(), AbortSignal.timeout(rules.drainMs)).catch(() => {})]);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await rest.disposeAsync();
    watch[Symbol.dispose]();
    server.closeAllConnections();
    await closed;
    log.info("stopped");
  }

  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => (closing ??= end());
  log.info("listening", { url, ...(publicUrl === null ? {} : { publicUrl }), driver, model: parts.model.name, auth: authenticator.mode });
  return {
    url,
    publicUrl,
    port,
    driver,
    model: parts.model,
    tokens,
    loginLinks: isOpen ? [] : toLoginLinks(tokens, parts),
    snippet: toClientSnippet({ url: parts.url, token: isOpen ? null : (tokens.made ?? "YOUR TOKEN") }),
    configured: parts.configured,
    parts,
    close,
    [Symbol.asyncDispose]: close,
  };
}

const builtPage = path.join(import.meta.dirname, "../../../dist/web");

function toOrigin(url: string | undefined): string | null {
  return url === undefined ? null : new URL(url).origin;
}

type Answer = (request: Request) => Response | Promise<Response>;

/** The port is known once it listens, and what answers depends on the port: a request that comes in between waits for it. */
async function startListening({
  host,
  port,
}: ServerOptions): Promise<{ server: Server; port: number; answerWith: (answer: Answer) => void }> {
  const ready = Promise.withResolvers<Answer>();
  const server = createAdaptorServer({ fetch: async (request: Request) => (await ready.promise)(request), serverOptions }) as Server;
  return { server, port: await listen(server, { host, port }), answerWith: ready.resolve };
}

function toLoginLinks(
  { tokens }: TokenSource,
  { authenticator, url }: Pick<ServerParts, "authenticator" | "url">,
): RunningServer["loginLinks"] {
  const tenants = new Map(tokens.map((one) => [one.tenant, one]));
  return [...tenants.values()].map(({ tenant, isOperator }) => ({
    tenant,
    url: `${url}/login?code=${authenticator.newLoginCode({ tenant, isOperator }).code}`,
  }));
}

function describeServer(
  { url, model, configured }: Pick<ServerParts, "url" | "model" | "configured">,
  { driver, isOpen }: { driver: string; isOpen: boolean },
): PageFacts {
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

/** A request must be there whole within ten minutes, its head at once. */
const serverOptions = { requestTimeout: 10 * 60_000, headersTimeout: 20_000, keepAliveTimeout: 65_000, maxHeaderSize: 16_384 };

export async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(notListening(error, { host, port })));
    server.listen(port, host, resolve);
  });
  server.removeAllListeners("error");
  server.on("clientError", (_error, socket) => socket.destroy());
  return (server.address() as AddressInfo).port;
}

function notListening(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): UsageError {
  const why = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not",
    EADDRNOTAVAIL: "this machine has no such address",
  }[error.code ?? ""];
  return new UsageError({
    code: "NOT_LISTENING",
    message: `The server cannot listen on ${host}:${port}: ${why ?? error.message}.`,
    hint: "Choose another with --port (0 takes any that is free) or --host.",
    cause: error,
  });
}

/** What goes into the configuration of a desktop client. */
function toClientSnippet({ url, token }: { url: string; token: string | null }): string {
  const server = { url: `${url}/mcp`, ...(token === null ? {} : { headers: { Authorization: `Bearer ${token}` } }) };
  return JSON.stringify({ mcpServers: { sluice: server } }, null, 2);
}
