import type { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, StandardSchemaV1, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { isRecord } from "../../text/json.ts";
import type { JsonSchema, ToolAnswer, ToolCallOptions } from "../backend-tool.ts";
import type { McpLimits } from "./mcp-source-options.ts";
import { describeCallFailure, isConnectionLoss, type ServerFacts } from "./mcp-call-error.ts";
import { listTools, type ListedTool } from "./list-tools.ts";
import type { StdioTransport } from "./stdio-transport.ts";

/**
 * What one request and its transport exchange, because the SDK has no parameters for it. The request sets the headers of this call. The transport sets the
 * HTTP status and `Retry-After` of a refusal, and the exact text of `structuredContent`, because parsing would round its numbers.
 */
export interface RequestContext {
  readonly headers: Readonly<Record<string, string>>;
  /** The answer is a tool's output. If it is large, a worker thread reads it. */
  readonly isToolCall: boolean;
  /** Called when the stream ends without the answer. */
  readonly onLost: (error: Error) => void;
  status?: number;
  retryAfter?: string | null;
  /** Size of the message that held the answer. */
  answerBytes?: number;
  structuredJson?: string | undefined;
  /** A large answer that a worker thread has read. The SDK gets only its small fields. */
  read?: object | undefined;
  /** Makes the transport forget the request. */
  release?: () => void;
}

export type RequestContexts = AsyncLocalStorage<RequestContext>;

export interface BackendConnectionParts {
  readonly client: Client;
  readonly transport: StdioTransport | StreamableHTTPClientTransport;
  readonly contexts: RequestContexts;
  readonly server: ServerFacts;
  readonly limits: McpLimits;
  readonly log: (text: string) => void;
}

export interface CallAnswer extends ToolAnswer {
  readonly bytes: number | undefined;
}

/** One connection to a backend MCP server, after its handshake. A lost connection does not recover; the source opens a new one. */
export class BackendConnection {
  readonly #parts: BackendConnectionParts;
  #listing: Promise<ListedTool[]> | null = null;
  #isSubscribed = false;
  /** True once no new request should be sent. Calls that are under way continue. */
  isLost = false;
  readonly #ended = Promise.withResolvers<void>();
  readonly ended: Promise<void> = this.#ended.promise;
  #openRequests = 0;
  #closing: Promise<void> | null = null;

  constructor(parts: BackendConnectionParts) {
    this.#parts = parts;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no event target here
    parts.client.onclose = () => this.retire();
    parts.client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#listing = null;
    });
  }

  get isLegacy(): boolean {
    return this.#parts.client.getProtocolEra() === "legacy";
  }

  /** Since 2026-07-28, servers announce changes of their tools only to subscribers. */
  async subscribe(): Promise<void> {
    const { client, limits, log } = this.#parts;
    if (this.#isSubscribed || this.isLegacy || client.getServerCapabilities()?.tools?.listChanged !== true) return;
    try {
      const timeout = Math.min(MAX_SUBSCRIBE_MS, limits.connectTimeoutMs);
      const subscription = await client.listen({ toolsListChanged: true }, { timeout });
      this.#isSubscribed = true;
      void subscription.closed.then(() => {
        this.#isSubscribed = false;
        this.#listing = null; // later changes would not be announced
      });
    } catch (error) {
      log(`cannot subscribe to changes of the tools: ${(error as Error).message}`);
    }
  }

  /** Lists the tools. The list is cached until the server announces a change. Rejects with an McpCallError. */
  async tools(): Promise<ListedTool[]> {
    this.#listing ??= this.#list();
    const listing = this.#listing;
    listing.catch(() => {
      if (this.#listing === listing) this.#listing = null;
    });
    return listing;
  }

  async #list(): Promise<ListedTool[]> {
    const { client, limits, log } = this.#parts;
    if (client.getServerCapabilities()?.tools === undefined) return [];
    await this.subscribe();
    const { value } = await this.#request({ headers: {}, isToolCall: false, signal: undefined }, (signal) => {
      const options = { signal, timeout: limits.connectTimeoutMs };
      return listTools((cursor) => client.request({ method: "tools/list", params: { cursor } }, anyResult, options), log);
    });
    return value;
  }

  /** Rejects with an McpCallError, or with `signal.reason`. */
  async call(tool: ListedTool, args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<CallAnswer> {
    const { client, limits } = this.#parts;
    const { headers = {}, meta } = options;
    const params = { name: tool.name, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: withoutProtocolKeys(meta) }) };
    const { value, context } = await this.#request({ headers, isToolCall: true, signal: options.signal }, (signal) =>
      client.request({ method: "tools/call", params }, anyResult, {
        signal,
        timeout: limits.timeoutMs,
        maxTotalTimeout: limits.maxTotalTimeoutMs,
        resetTimeoutOnProgress: true,
        onprogress: ({ progress, total, message }) => options.onProgress?.({ progress, total, message }),
        ...(this.isLegacy ? {} : { headers: createParameterHeaders(tool.inputSchema, args) }),
      }),
    );
    const { structuredJson, read, answerBytes: bytes } = context;
    return { output: value, as: "mcp", structuredJson, read, bytes };
  }

  /** Sends a request in a context of its own, cancels it when `signal` aborts, and translates its errors. */
  async #request<Value>(
    { headers, isToolCall, signal }: Pick<RequestContext, "headers" | "isToolCall"> & { signal: AbortSignal | undefined },
    send: (signal: AbortSignal) => Promise<Value>,
  ): Promise<{ value: Value; context: RequestContext }> {
    signal?.throwIfAborted();
    const { contexts, server } = this.#parts;
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => {});
    const context: RequestContext = { headers, isToolCall, onLost: lost.reject };
    const cancelled = new AbortController();
    // In the context of the request, so that the cancellation message carries its headers too.
    const cancel = () => contexts.run(context, () => cancelled.abort(signal?.reason));
    signal?.addEventListener("abort", cancel, { once: true });
    this.#openRequests += 1;
    try {
      return { value: await contexts.run(context, () => Promise.race([send(cancelled.signal), lost.promise])), context };
    } catch (error) {
      signal?.throwIfAborted();
      cancelled.abort(error);
      if (this.isExpired(context.status) || (context.status === undefined && isConnectionLoss(error))) this.retire();
      throw describeCallFailure(error, server, context);
    } finally {
      signal?.removeEventListener("abort", cancel);
      context.release?.();
      this.#openRequests -= 1;
      if (this.isLost && this.#openRequests === 0) void this.close();
    }
  }

  /** Accepts no new requests, and closes after the last one has ended. */
  retire(): void {
    this.isLost = true;
    if (this.#openRequests === 0) void this.close();
  }

  /** Ends requests that are under way. Idempotent; never rejects. */
  close(): Promise<void> {
    this.isLost = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { client, transport } = this.#parts;
    if ("terminateSession" in transport && transport.sessionId !== undefined) {
      await Promise.race([transport.terminateSession().catch(() => {}), sleep(MAX_TERMINATE_MS, undefined, { ref: false })]);
    }
    await client.close().catch(() => {});
    await transport.close().catch(() => {});
    this.#ended.resolve();
  }

  /** Whether the server no longer knows our `Mcp-Session-Id`. It has done nothing then, and the request can be repeated on a new connection. */
  isExpired(status: number | undefined): boolean {
    const { transport } = this.#parts;
    return status === 404 && "terminateSession" in transport && transport.sessionId !== undefined;
  }
}

const MAX_SUBSCRIBE_MS = 5_000;
const MAX_TERMINATE_MS = 1_000;

/** Accepts every answer. The SDK's own schema would reject a whole answer for one part of an unknown kind. */
const anyResult: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "sluice", validate: (value) => ({ value }) },
};

/** Drops keys of the protocol, which only the SDK may set. */
function withoutProtocolKeys(meta: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => key !== "progressToken" && !key.startsWith("io.modelcontextprotocol/")));
}

/**
 * Headers that repeat arguments marked with `x-mcp-header` in the input schema, so that proxies can route by them. Servers of 2026-07-28 refuse a call
 * without them.
 */
export function createParameterHeaders(schema: JsonSchema, args: Readonly<Record<string, unknown>>): Record<string, string> {
  const { properties } = schema;
  if (!isRecord(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) => {
      if (!isRecord(property)) return [];
      const header = property["x-mcp-header"];
      const value = args[name];
      if (isRecord(value)) return Object.entries(createParameterHeaders(property, value));
      const text = toHeaderText(value);
      return typeof header === "string" && headerName.test(header) && text !== null ? [[`Mcp-Param-${header}`, toHeaderValue(text)]] : [];
    }),
  );
}

const headerName = /^[!#$%&'*+.^_`|~\w-]+$/;

function toHeaderText(value: unknown): string | null {
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  return typeof value === "number" && isExact ? String(value) : null;
}

function toHeaderValue(text: string): string {
  const isPlain = /^[\t\x20-\x7e]+$/.test(text) && text === text.trim() && !(text.startsWith("=?base64?") && text.endsWith("?="));
  return isPlain ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}
