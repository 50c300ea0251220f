import { AsyncLocalStorage } from "node:async_hooks";
import { Client, type StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { packageVersion } from "../../package-version.ts";
import type { CallContext, CallContexts } from "./call-context.ts";
import { Connection } from "./connection.ts";
import type { McpLimits, McpLogEntry, McpServerEntry, StdioServerEntry } from "./mcp-source-options.ts";
import { createHttpTransport } from "./create-http-transport.ts";
import { describeConnectFailure, type FailureScene, type McpCallError } from "./mcp-call-error.ts";
import { StdioTransport } from "./stdio-transport.ts";

type HostEnvironment = Readonly<Record<string, string | undefined>>;

export interface ConnectionOptions {
  readonly name: string;
  readonly server: McpServerEntry;
  readonly environment: HostEnvironment;
  readonly limits: McpLimits;
  /** The server is known to speak a version before 2026-07-28: it is not asked. */
  readonly isLegacy: boolean;
  readonly reader: OutputReader;
  readonly onLog: (entry: McpLogEntry) => void;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/** How we introduce ourselves to servers. */
export const clientInfo: { readonly name: string; readonly version: string } = { name: "sluice", version: packageVersion };

const MAX_LOG = 2_000;
/** A program may take its time to start; one that starts and does not know the question falls silent only this long. */
const MAX_PROBE_MS = 10_000;

/** Rejects with an McpCallError whose message says in plain words why there is no connection. Nothing is left of an attempt that failed. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const first = await attempt(options, options.isLegacy ? "legacy" : "auto");
  if (first instanceof Connection) return first;
  if (first.tryAgain === null) throw first.error;
  const second = await attempt(options, first.tryAgain);
  if (second instanceof Connection) return second;
  throw second.error;
}

type Mode = "auto" | "legacy";

interface FailedAttempt {
  readonly error: McpCallError;
  /** How another attempt may do better at once. */
  readonly tryAgain: Mode | null;
}

async function attempt(options: ConnectionOptions, mode: Mode): Promise<Connection | FailedAttempt> {
  const { name, server, limits, signal } = options;
  const contexts = new AsyncLocalStorage<CallContext>();
  const redact = createRedactor(server);
  const log = (from: McpLogEntry["from"], text: string) => options.onLog({ server: name, from, text: redact(text.slice(0, MAX_LOG)) });
  const transport = createTransport(options, contexts, log);
  const stdio = transport instanceof StdioTransport ? transport : null;
  const scene: FailureScene = { name, server, stdio, redact };
  const probeTimeoutMs = stdio === null ? limits.connectTimeoutMs : Math.min(MAX_PROBE_MS, limits.connectTimeoutMs / 2);
  const client = new Client(clientInfo, { versionNegotiation: { mode, probe: { timeoutMs: probeTimeoutMs } } });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
  client.onerror = (error) => log("client", error.message);

  const timeout = AbortSignal.timeout(limits.connectTimeoutMs);
  const ended = AbortSignal.any([signal, timeout]);
  const close = () => void transport.close().catch(() => {});
  ended.addEventListener("abort", close, { once: true });
  try {
    signal.throwIfAborted();
    await client.connect(transport, { timeout: limits.connectTimeoutMs });
    signal.throwIfAborted();
    const connection = new Connection({ client, transport, contexts, scene, limits, log: (text) => log("client", text) });
    await connection.subscribe();
    return connection;
  } catch (error) {
    const hadEnded = stdio !== null && stdio.exit !== null && !timeout.aborted;
    const timedOutAfterMs = timeout.aborted ? limits.connectTimeoutMs : null;
    await transport.close().catch(() => {});
    signal.throwIfAborted();
    const failure = describeConnectFailure(error, scene, timedOutAfterMs);
    return { error: failure, tryAgain: chooseRetry(mode, hadEnded, failure) };
  } finally {
    ended.removeEventListener("abort", close);
  }
}

function chooseRetry(mode: Mode, hadEnded: boolean, { systemCode }: McpCallError): Mode | null {
  // Some servers before 2026-07-28 end at any message that comes before `initialize`: they get a second life, and are not asked again.
  if (mode === "auto" && hadEnded) return "legacy";
  // A connection that fetch had kept from a server that has gone.
  return systemCode === "ECONNRESET" || systemCode === "UND_ERR_SOCKET" ? mode : null;
}

function createTransport(
  { server, environment, limits, reader }: ConnectionOptions,
  contexts: CallContexts,
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
    onGarbage: (text) => log("client", `a line on stdout is no message: ${text}`),
  });
}

/** What every child gets if the host has it: enough to find programs, a home and a place for temporary files. Keys, tokens and proxies are not here. */
const inheritedNames = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ"];

function createChildEnvironment(host: HostEnvironment, named: StdioServerEntry["env"]): Record<string, string> {
  const inherited = inheritedNames.flatMap((name) => {
    const value = host[name];
    return value === undefined || value.startsWith("()") ? [] : [[name, value] as const]; // "()": an exported shell function
  });
  return { ...Object.fromEntries(inherited), ...named };
}

/** Takes out of a text what the server's entry was given in confidence, since a server may well print it when it fails. */
function createRedactor(server: McpServerEntry): (text: string) => string {
  const values = "url" in server ? Object.values(server.headers ?? {}) : Object.values(server.env ?? {});
  const secrets = values.flatMap((value) => [value, value.replace(/^\w+ /, "")]).filter((value) => value.length >= 8);
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((rest, secret) => rest.replaceAll(secret, "[hidden]"), text);
}
