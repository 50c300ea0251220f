import { AsyncLocalStorage } from "node:async_hooks";
import { Client, type StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { packageVersion } from "../../package-version.ts";
import { BackendConnection, type RequestContext, type RequestContexts } from "./backend-connection.ts";
import type { McpLimits, McpLogEntry, McpServerEntry, StdioServerEntry } from "./mcp-source-options.ts";
import { createHttpTransport } from "./create-http-transport.ts";
import { describeConnectFailure, type McpCallError, type ServerFacts } from "./mcp-call-error.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface BackendConnectionOptions {
  readonly name: string;
  readonly server: McpServerEntry;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly limits: McpLimits;
  /** The server is known to speak a version before 2026-07-28, so version negotiation is skipped. */
  readonly isLegacy: boolean;
  readonly reader: OutputReader;
  readonly onLog: (entry: McpLogEntry) => void;
  readonly signal: AbortSignal;
}

/** Sent to servers in the handshake. */
export const clientInfo: { readonly name: string; readonly version: string } = { name: "sluice", version: packageVersion };

const MAX_LOG_CHARACTERS = 2_000;
/** Longest wait for a stdio server that ignores version negotiation. */
const MAX_PROBE_MS = 10_000;

/** Connects to a server, with one retry where that can help. Rejects with an McpCallError that says why; a failed attempt leaves no process behind. */
export async function openBackendConnection(options: BackendConnectionOptions): Promise<BackendConnection> {
  const first = await attempt(options, options.isLegacy ? "legacy" : "auto");
  const last = first instanceof BackendConnection || first.retryAs === null ? first : await attempt(options, first.retryAs);
  if (last instanceof BackendConnection) return last;
  throw last.error;
}

type Mode = "auto" | "legacy";

interface FailedAttempt {
  readonly error: McpCallError;
  /** The mode in which an immediate second attempt may succeed. */
  readonly retryAs: Mode | null;
}

async function attempt(options: BackendConnectionOptions, mode: Mode): Promise<BackendConnection | FailedAttempt> {
  const { name, server, limits, signal } = options;
  const contexts = new AsyncLocalStorage<RequestContext>();
  const redact = createRedactor(server);
  const log = (from: McpLogEntry["from"], text: string) =>
    options.onLog({ server: name, from, text: redact(text.slice(0, MAX_LOG_CHARACTERS)) });
  const transport = createTransport(options, contexts, log);
  const stdio = transport instanceof StdioTransport ? transport : null;
  const facts: ServerFacts = { name, server, stdio, redact };
  const probeTimeoutMs = stdio === null ? limits.connectTimeoutMs : Math.min(MAX_PROBE_MS, limits.connectTimeoutMs / 2);
  const client = new Client(clientInfo, { versionNegotiation: { mode, probe: { timeoutMs: probeTimeoutMs } } });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no event target here
  client.onerror = (error) => log("client", error.message);

  const timeout = AbortSignal.timeout(limits.connectTimeoutMs);
  const stop = AbortSignal.any([signal, timeout]);
  const close = () => void transport.close().catch(() => {});
  stop.addEventListener("abort", close, { once: true });
  try {
    signal.throwIfAborted();
    await client.connect(transport, { timeout: limits.connectTimeoutMs });
    signal.throwIfAborted();
    const connection = new BackendConnection({ client, transport, contexts, server: facts, limits, log: (text) => log("client", text) });
    await connection.subscribe();
    return connection;
  } catch (error) {
    const hadExited = stdio !== null && stdio.exit !== null && !timeout.aborted;
    const timedOutAfterMs = timeout.aborted ? limits.connectTimeoutMs : null;
    await transport.close().catch(() => {});
    signal.throwIfAborted();
    const failure = describeConnectFailure(error, facts, timedOutAfterMs);
    return { error: failure, retryAs: chooseRetry(mode, hadExited, failure) };
  } finally {
    stop.removeEventListener("abort", close);
  }
}

function chooseRetry(mode: Mode, hadExited: boolean, { systemCode }: McpCallError): Mode | null {
  // Some servers before 2026-07-28 exit at any message before `initialize`. Start them again without negotiation.
  if (mode === "auto" && hadExited) return "legacy";
  // fetch reused a kept-alive connection to a server that has restarted.
  return systemCode === "ECONNRESET" || systemCode === "UND_ERR_SOCKET" ? mode : null;
}

function createTransport(
  { server, environment, limits, reader }: BackendConnectionOptions,
  contexts: RequestContexts,
  log: (from: McpLogEntry["from"], text: string) => void,
): StdioTransport | StreamableHTTPClientTransport {
  const { maxMessageBytes, killAfterMs } = limits;
  if ("url" in server)
    return createHttpTransport({ url: new URL(server.url), headers: server.headers ?? {}, maxMessageBytes, contexts, reader });
  const { command, args = [], env, cwd } = server;
  return new StdioTransport({
    command,
    args,
    environment: createChildEnvironment(environment, env),
    cwd,
    maxMessageBytes,
    killAfterMs,
    contexts,
    reader,
    onStderr: (line) => log("stderr", line),
    onGarbage: (text) => log("client", `not a message on stdout: ${text}`),
  });
}

/** Variables that every child process inherits: enough to find programs, a home and temporary files, but no keys, tokens or proxies. */
const inheritedNames = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ"];

function createChildEnvironment(host: BackendConnectionOptions["environment"], named: StdioServerEntry["env"]): Record<string, string> {
  const inherited = inheritedNames.flatMap((name) => {
    const value = host[name];
    return value === undefined || value.startsWith("()") ? [] : [[name, value] as const]; // "()" marks an exported shell function
  });
  return { ...Object.fromEntries(inherited), ...named };
}

/** Hides the values of `headers` and `env` of the entry, because a failing server may print them. */
function createRedactor(server: McpServerEntry): (text: string) => string {
  const values = "url" in server ? Object.values(server.headers ?? {}) : Object.values(server.env ?? {});
  const secrets = values.flatMap((value) => [value, value.replace(/^\w+ /, "")]).filter((value) => value.length >= 8);
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((redacted, secret) => redacted.replaceAll(secret, "[hidden]"), text);
}
