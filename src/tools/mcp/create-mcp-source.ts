import type { ErrorCode } from "../../errors/error-table.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { formatProbe } from "../../protocol/probe.ts";
import { isRecord } from "../../text/json.ts";
import { createOutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { BackendTool, ToolAnswer, ToolCallOptions, ToolListing, ToolSource } from "../backend-tool.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { BackendConnection, CallAnswer } from "./backend-connection.ts";
import { defaultMcpLimits, type McpLimits, type McpSourceOptions } from "./mcp-source-options.ts";
import type { ListedTool } from "./list-tools.ts";
import { McpCallError } from "./mcp-call-error.ts";
import { openBackendConnection } from "./open-backend-connection.ts";

/**
 * The tools of one MCP server. Connects on the first `tools()`. A server that is down is a gap in the listing; the next listing or call after its back-off
 * tries to reconnect, so no timer runs in between. Tools stay callable across reconnects. Throws UsageError for an invalid entry.
 */
export function createMcpSource(options: McpSourceOptions): ToolSource {
  checkServerEntry(options);
  return new McpSource(options);
}

class McpSource implements ToolSource {
  readonly name: string;
  readonly #options: McpSourceOptions;
  readonly #limits: McpLimits;
  readonly #clock: { now(): number };
  readonly #disposed = new AbortController();
  readonly #reader = createOutputReader();
  /** All connections that are not closed yet, including retired ones. */
  readonly #open = new Set<BackendConnection>();
  #connection: BackendConnection | null = null;
  #connecting: Promise<BackendConnection> | null = null;
  /** Why the last attempt failed. */
  #failure: McpCallError | null = null;
  /** Consecutive failures. Each doubles the wait before the next attempt, up to a maximum. */
  #failureCount = 0;
  #nextAttemptAt = 0;
  #lastListing: { readonly listed: readonly ListedTool[]; readonly listing: ToolListing } | null = null;
  #isLegacy = false;
  #disposing: Promise<void> | null = null;

  constructor(options: McpSourceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#limits = toLimits(options);
    this.#clock = options.clock ?? performance;
  }

  async tools(signal?: AbortSignal): Promise<ToolListing> {
    signal?.throwIfAborted();
    try {
      const listed = await this.#withConnection({
        signal,
        use: (connection) => orAbort(connection.tools(), signal),
        mayRetry: (_error, connection) => connection.isLost,
      });
      this.#recordSuccess();
      return this.#toListing(listed);
    } catch (error) {
      signal?.throwIfAborted();
      // A server that cannot list its tools counts as down, so that not every turn waits for it.
      if (this.#connection?.isLost === false) {
        this.#connection.retire();
        this.#recordFailure(error);
      }
      return { tools: [], gap: { server: this.name, reason: (error as Error).message } };
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  async #dispose(): Promise<void> {
    this.#disposed.abort(new McpCallError({ code: "MCP_UNREACHABLE", message: "The connection to the server was closed." }));
    await this.#connecting?.catch(() => {});
    await Promise.all([...this.#open].map((connection) => connection.close()));
    await this.#reader.close();
  }

  /** Returns the same object as long as the tools have not changed. */
  #toListing(listed: readonly ListedTool[]): ToolListing {
    if (this.#lastListing?.listed !== listed) {
      this.#lastListing = { listed, listing: { tools: listed.map((tool) => this.#toBackendTool(tool)), gap: null } };
    }
    return this.#lastListing.listing;
  }

  #toBackendTool(tool: ListedTool): BackendTool {
    return {
      ...tool,
      server: this.name,
      tags: [...new Set([this.name, ...tool.tags])],
      call: (args, options) => this.#call(tool, args, options),
    };
  }

  async #call(tool: ListedTool, args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<ToolAnswer> {
    options.signal?.throwIfAborted();
    const startedAt = performance.now();
    const probe = (event: string, fields: Readonly<Record<string, string | number | undefined>>) =>
      this.#options.onProbe?.(formatProbe("mcp-latency-probe", event, { server: this.name, tool: tool.name, ...fields }));
    const elapsed = () => Math.round((performance.now() - startedAt) * 10) / 10;
    probe("mcp_call_start", {});
    try {
      const { bytes, ...answer } = await this.#withConnection<CallAnswer>({
        signal: options.signal,
        use: (connection) => connection.call(tool, args, options),
        mayRetry: (error, connection) => connection.isExpired(error.status), // the server has done nothing yet
      });
      this.#recordSuccess();
      if (isRecord(answer.output) && answer.output["isError"] === true)
        probe("mcp_call_failure", { bytes, ms: elapsed(), code: "TOOL_ERROR" satisfies ErrorCode });
      else probe("mcp_call_success", { bytes, ms: elapsed() });
      return answer;
    } catch (error) {
      const code: ErrorCode = error instanceof McpCallError ? error.code : "CANCELLED";
      probe("mcp_call_failure", { ms: elapsed(), code });
      throw error;
    }
  }

  /** Retries once on a new connection if `mayRetry` allows it. */
  async #withConnection<Value>({ signal, use, mayRetry }: ConnectionUse<Value>): Promise<Value> {
    const connection = await orAbort(this.#connect(), signal);
    try {
      return await use(connection);
    } catch (error) {
      this.#disposed.signal.throwIfAborted();
      if (!(error instanceof McpCallError) || !mayRetry(error, connection)) throw error;
      return use(await orAbort(this.#connect(), signal));
    }
  }

  async #connect(): Promise<BackendConnection> {
    this.#disposed.signal.throwIfAborted();
    if (this.#connection !== null && !this.#connection.isLost) return this.#connection;
    if (this.#connecting !== null) return this.#connecting;
    const waitMs = this.#nextAttemptAt - this.#clock.now();
    if (this.#failure !== null && waitMs > 0) throw withRetryAfter(this.#failure, waitMs);
    this.#connecting = this.#openConnection().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #openConnection(): Promise<BackendConnection> {
    const { name, server, environment = {}, onLog = () => {} } = this.#options;
    try {
      const connection = await openBackendConnection({
        name,
        server,
        environment,
        limits: this.#limits,
        isLegacy: this.#isLegacy,
        reader: this.#reader,
        onLog,
        signal: this.#disposed.signal,
      });
      this.#open.add(connection);
      void connection.ended.then(() => this.#open.delete(connection));
      this.#isLegacy = connection.isLegacy;
      this.#connection = connection;
      this.#failure = null;
      return connection;
    } catch (error) {
      this.#isLegacy = false; // the server may come back with another version
      this.#recordFailure(error);
      throw error;
    }
  }

  #recordSuccess(): void {
    this.#failureCount = 0;
    this.#failure = null;
  }

  #recordFailure(error: unknown): void {
    const { firstMs, maxMs } = this.#options.backoff ?? { firstMs: 1_000, maxMs: 60_000 };
    if (error instanceof McpCallError) this.#failure = error;
    this.#nextAttemptAt = this.#clock.now() + Math.min(maxMs, firstMs * 2 ** this.#failureCount);
    this.#failureCount += 1;
  }
}

function withRetryAfter({ code, message, status, systemCode, cause }: McpCallError, waitMs: number): McpCallError {
  return new McpCallError({ code, message, status, systemCode, cause, retryAfter: Math.ceil(waitMs / 1_000) });
}

interface ConnectionUse<Value> {
  readonly signal: AbortSignal | undefined;
  readonly use: (connection: BackendConnection) => Promise<Value>;
  readonly mayRetry: (error: McpCallError, connection: BackendConnection) => boolean;
}

function checkServerEntry({ name, server }: McpSourceOptions): void {
  const refuse = (message: string): never => {
    throw new UsageError({ code: "MCP_SERVER_ENTRY_INVALID", message, hint: "See docs/mcp-servers.md for the shape of mcpServers." });
  };
  const quoted = JSON.stringify(name);
  if (!("url" in server)) return server.command ? undefined : refuse(`The server ${quoted} has neither a command nor a url.`);
  const { protocol } = URL.parse(server.url) ?? refuse(`The url of the server ${quoted} is not a URL: ${server.url}`);
  if (protocol !== "http:" && protocol !== "https:")
    refuse(`The url of the server ${quoted} must start with http:// or https://, not ${protocol}//`);
}

function toLimits(options: McpSourceOptions): McpLimits {
  const keys = Object.keys(defaultMcpLimits) as (keyof McpLimits)[];
  return Object.fromEntries(keys.map((key) => [key, options[key] ?? defaultMcpLimits[key]])) as McpLimits;
}
