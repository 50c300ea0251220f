import { setTimeout as sleep } from "node:timers/promises";
import type { Client, StandardSchemaV1, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ToolAnswer, ToolCallOptions } from "../backend-tool.ts";
import type { CallContext, CallContexts } from "./call-context.ts";
import type { McpLimits } from "./mcp-source-options.ts";
import { describeCallFailure, isConnectionLoss, type FailureScene } from "./mcp-call-error.ts";
import { listTools, type ToolDescription } from "./list-tools.ts";
import { createParameterHeaders } from "./parameter-headers.ts";
import type { StdioTransport } from "./stdio-transport.ts";

export interface ConnectionParts {
  readonly client: Client;
  readonly transport: StdioTransport | StreamableHTTPClientTransport;
  readonly contexts: CallContexts;
  readonly scene: FailureScene;
  readonly limits: McpLimits;
  readonly log: (text: string) => void;
}

export interface CallAnswer extends ToolAnswer {
  readonly bytes: number | undefined;
}

/** One connection to a server, from its handshake to its end. It is lost once and for good; the source makes another. */
export class Connection {
  readonly #parts: ConnectionParts;
  #listing: Promise<ToolDescription[]> | null = null;
  #isSubscribed = false;
  /** True once nothing more should be asked of it. Calls that it still serves go on. */
  isLost = false;
  readonly #ended = Promise.withResolvers<void>();
  /** Resolves when nothing is left of it. */
  readonly ended: Promise<void> = this.#ended.promise;
  #calls = 0;
  #closing: Promise<void> | null = null;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
    parts.client.onclose = () => this.retire();
    parts.client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#listing = null;
    });
  }

  get isLegacy(): boolean {
    return this.#parts.client.getProtocolEra() === "legacy";
  }

  /** From 2026-07-28 on, a server says that its tools changed only to those who asked for it. */
  async subscribe(): Promise<void> {
    const { client, limits, log } = this.#parts;
    if (this.#isSubscribed || this.isLegacy || client.getServerCapabilities()?.tools?.listChanged !== true) return;
    try {
      const timeout = Math.min(MAX_SUBSCRIBE_MS, limits.connectTimeoutMs);
      const subscription = await client.listen({ toolsListChanged: true }, { timeout });
      this.#isSubscribed = true;
      void subscription.closed.then(() => {
        this.#isSubscribed = false;
        this.#listing = null; // what changed from now on would not be told: ask again
      });
    } catch (error) {
      log(`changes of its tools will not be seen: ${(error as Error).message}`);
    }
  }

  /** What the server offers; asked once, and again after it said that it changed. Rejects with an McpCallError. */
  async tools(): Promise<ToolDescription[]> {
    this.#listing ??= this.#list();
    const listing = this.#listing;
    listing.catch(() => {
      if (this.#listing === listing) this.#listing = null;
    });
    return listing;
  }

  async #list(): Promise<ToolDescription[]> {
    const { client, limits, log } = this.#parts;
    if (client.getServerCapabilities()?.tools === undefined) return [];
    await this.subscribe();
    const { value } = await this.#exchange({ headers: {}, isToolCall: false, signal: undefined }, (signal) => {
      const options = { signal, timeout: limits.connectTimeoutMs };
      return listTools((cursor) => client.request({ method: "tools/list", params: { cursor } }, anyResult, options), log);
    });
    return value;
  }

  /** Rejects with an McpCallError, or with the reason of the signal. */
  async call(tool: ToolDescription, args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<CallAnswer> {
    const { client, limits } = this.#parts;
    const { headers = {}, meta } = options;
    const params = { name: tool.name, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: withoutReserved(meta) }) };
    const { value, context } = await this.#exchange({ headers, isToolCall: true, signal: options.signal }, (signal) =>
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
    return { output: value, as: "mcp", structuredJson, ...(read === undefined ? {} : { read }), bytes };
  }

  /** Runs a request in a context of its own, ends it with the signal, and says what is wrong when it fails. */
  async #exchange<Value>(
    { headers, isToolCall, signal }: Pick<CallContext, "headers" | "isToolCall"> & { signal: AbortSignal | undefined },
    request: (signal: AbortSignal) => Promise<Value>,
  ): Promise<{ value: Value; context: CallContext }> {
    signal?.throwIfAborted();
    const { contexts, scene } = this.#parts;
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => {});
    const context: CallContext = { headers, isToolCall, onLost: lost.reject };
    const ended = new AbortController();
    // In the call's context, so that the message of cancellation carries its headers too.
    const end = () => contexts.run(context, () => ended.abort(signal?.reason));
    signal?.addEventListener("abort", end, { once: true });
    this.#calls += 1;
    try {
      return { value: await contexts.run(context, () => Promise.race([request(ended.signal), lost.promise])), context };
    } catch (error) {
      signal?.throwIfAborted();
      ended.abort(error);
      if (this.isExpired(context.status) || (context.status === undefined && isConnectionLoss(error))) this.retire();
      throw describeCallFailure(error, scene, context);
    } finally {
      signal?.removeEventListener("abort", end);
      context.release?.();
      this.#calls -= 1;
      if (this.isLost && this.#calls === 0) void this.close();
    }
  }

  /** Nothing more is asked of it; it is closed when its last call has ended. */
  retire(): void {
    this.isLost = true;
    if (this.#calls === 0) void this.close();
  }

  /** Ends calls that are still on their way. Idempotent; never rejects. */
  close(): Promise<void> {
    this.isLost = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { client, transport } = this.#parts;
    if ("terminateSession" in transport && transport.sessionId !== undefined) {
      await Promise.race([transport.terminateSession().catch(() => {}), sleep(MAX_GOODBYE_MS, undefined, { ref: false })]);
    }
    await client.close().catch(() => {});
    await transport.close().catch(() => {});
    this.#ended.resolve();
  }

  /** The server has forgotten our session. It did nothing: the protocol says to begin a new one. */
  isExpired(status: number | undefined): boolean {
    const { transport } = this.#parts;
    return status === 404 && "terminateSession" in transport && transport.sessionId !== undefined;
  }
}

const MAX_SUBSCRIBE_MS = 5_000;
const MAX_GOODBYE_MS = 1_000;

/** Takes an answer as it is. The SDK's own check would lose it whole for one part of a kind it does not know. */
const anyResult: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "sluice", validate: (value) => ({ value }) },
};

/** The protocol's own keys are the SDK's to set. */
function withoutReserved(meta: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => key !== "progressToken" && !key.startsWith("io.modelcontextprotocol/")));
}
