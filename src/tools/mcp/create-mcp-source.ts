import type { ErrorCode } from "../../errors/error-table.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { formatProbe } from "../../protocol/probe.ts";
import { createOutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { BackendTool, ToolAnswer, ToolCallOptions, ToolListing, ToolSource } from "../backend-tool.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { CallAnswer, Connection } from "./connection.ts";
import { defaultMcpLimits, type Clock, type McpLimits, type McpSourceOptions } from "./mcp-source-options.ts";
import type { ToolDescription } from "./list-tools.ts";
import { McpCallError } from "./mcp-call-error.ts";
import { openConnection } from "./open-connection.ts";

/**
 * The tools of one MCP server. Nothing is started before the first `tools()`. A server that is down is a gap in the listing; it is tried again when
 * somebody asks and its back-off is over, so no timer runs in between. Its tools stay callable: a call makes the connection anew if it has to.
 */
export function createMcpSource(options: McpSourceOptions): ToolSource {
  checkServerEntry(options);
  return new McpSource(options);
}

class McpSource implements ToolSource {
  readonly name: string;
  readonly #options: McpSourceOptions;
  readonly #limits: McpLimits;
  readonly #clock: Clock;
  readonly #ended = new AbortController();
  readonly #reader = createOutputReader();
  /** Every connection that may still hold something. */
  readonly #open = new Set<Connection>();
  #connection: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  /** Why the last attempt failed. Each failure in a row doubles the wait before the next attempt, up to a bound. */
  #failure: McpCallError | null = null;
  #failures = 0;
  #nextAttemptAt = 0;
  #listed: { readonly descriptions: readonly ToolDescription[]; readonly listing: ToolListing } | null = null;
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
      const descriptions = await this.#withConnection({
        signal,
        use: (connection) => orAbort(connection.tools(), signal),
        mayRepeat: (_error, connection) => connection.isLost,
      });
      this.#noteSuccess();
      return this.#toListing(descriptions);
    } catch (error) {
      signal?.throwIfAborted();
      // A server that cannot say what it offers is as good as down: it is not asked again at every turn.
      if (this.#connection?.isLost === false) {
        this.#connection.retire();
        this.#noteFailure(error);
      }
      return { tools: [], gap: { server: this.name, reason: (error as Error).message } };
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  async #dispose(): Promise<void> {
    this.#ended.abort(new McpCallError({ code: "MCP_UNREACHABLE", message: "The connection to the server was closed." }));
    await this.#connecting?.catch(() => {});
    await Promise.all([...this.#open].map((connection) => connection.close()));
    await this.#reader.close();
  }

  /** The same object as long as nothing changed. */
  #toListing(descriptions: readonly ToolDescription[]): ToolListing {
    if (this.#listed?.descriptions !== descriptions) {
      this.#listed = { descriptions, listing: { tools: descriptions.map((description) => this.#toBackendTool(description)), gap: null } };
    }
    return this.#listed.listing;
  }

  #toBackendTool(description: ToolDescription): BackendTool {
    return {
      ...description,
      server: this.name,
      tags: [...new Set([this.name, ...description.tags])],
      call: (args, options) => this.#call(description, args, options),
    };
  }

  async #call(tool: ToolDescription, args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<ToolAnswer> {
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
        mayRepeat: (error, connection) => connection.isExpired(error.status), // then the server has done nothing yet
      });
      this.#noteSuccess();
      if (isToolError(answer.output)) probe("mcp_call_failure", { bytes, ms: elapsed(), code: "TOOL_ERROR" satisfies ErrorCode });
      else probe("mcp_call_success", { bytes, ms: elapsed() });
      return answer;
    } catch (error) {
      const code: ErrorCode = error instanceof McpCallError ? error.code : "CANCELLED";
      probe("mcp_call_failure", { ms: elapsed(), code });
      throw error;
    }
  }

  /** Once more, on a new connection, where that can do no harm. */
  async #withConnection<Value>({ signal, use, mayRepeat }: Use<Value>): Promise<Value> {
    const connection = await orAbort(this.#connect(), signal);
    try {
      return await use(connection);
    } catch (error) {
      this.#ended.signal.throwIfAborted();
      if (!(error instanceof McpCallError) || !mayRepeat(error, connection)) throw error;
      return use(await orAbort(this.#connect(), signal));
    }
  }

  async #connect(): Promise<Connection> {
    this.#ended.signal.throwIfAborted();
    if (this.#connection !== null && !this.#connection.isLost) return this.#connection;
    if (this.#connecting !== null) return this.#connecting;
    const waitMs = this.#nextAttemptAt - this.#clock.now();
    if (this.#failure !== null && waitMs > 0) throw toStillDown(this.#failure, waitMs);
    this.#connecting = this.#makeConnection().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #makeConnection(): Promise<Connection> {
    const { name, server, environment = {}, onLog = () => {} } = this.#options;
    const [limits, reader, signal, isLegacy] = [this.#limits, this.#reader, this.#ended.signal, this.#isLegacy];
    try {
      const connection = await openConnection({ name, server, environment, limits, isLegacy, reader, onLog, signal });
      this.#open.add(connection);
      void connection.ended.then(() => this.#open.delete(connection));
      this.#isLegacy = connection.isLegacy;
      this.#connection = connection;
      this.#failure = null;
      return connection;
    } catch (error) {
      this.#isLegacy = false; // it may have been replaced by one that speaks another version
      this.#noteFailure(error);
      throw error;
    }
  }

  #noteSuccess(): void {
    this.#failures = 0;
    this.#failure = null;
  }

  #noteFailure(error: unknown): void {
    const { firstMs, maxMs } = this.#options.backoff ?? { firstMs: 1_000, maxMs: 60_000 };
    if (error instanceof McpCallError) this.#failure = error;
    this.#nextAttemptAt = this.#clock.now() + Math.min(maxMs, firstMs * 2 ** this.#failures);
    this.#failures += 1;
  }
}

function toStillDown({ code, message, status, systemCode, cause }: McpCallError, waitMs: number): McpCallError {
  return new McpCallError({ code, message, status, systemCode, cause, retryAfter: Math.ceil(waitMs / 1_000) });
}

interface Use<Value> {
  readonly signal: AbortSignal | undefined;
  readonly use: (connection: Connection) => Promise<Value>;
  readonly mayRepeat: (error: McpCallError, connection: Connection) => boolean;
}

/** Throws for an entry that can never work. */
function checkServerEntry({ name, server }: McpSourceOptions): void {
  const refuse = (message: string): never => {
    throw new UsageError({ code: "MCP_SERVER_ENTRY_INVALID", message, hint: "See docs/mcp-servers.md for the shape of mcpServers." });
  };
  const quoted = JSON.stringify(name);
  if (!("url" in server)) return server.command ? undefined : refuse(`The server ${quoted} has neither a command nor a url.`);
  const { protocol } = URL.parse(server.url) ?? refuse(`The url of the server ${quoted} is no URL: ${server.url}`);
  if (protocol !== "http:" && protocol !== "https:")
    refuse(`The url of the server ${quoted} must begin with http:// or https://, not ${protocol}//`);
}

function isToolError(output: unknown): boolean {
  return typeof output === "object" && output !== null && "isError" in output && output.isError === true;
}

function toLimits(options: McpSourceOptions): McpLimits {
  const keys = Object.keys(defaultMcpLimits) as (keyof McpLimits)[];
  return Object.fromEntries(keys.map((key) => [key, options[key] ?? defaultMcpLimits[key]])) as McpLimits;
}
