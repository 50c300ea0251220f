/** How a server is reached: the shape that desktop clients use for an entry of `mcpServers`. */
export type McpServerEntry = StdioServerEntry | HttpServerEntry;

/** A program that is started for us and speaks over its standard input and output. */
export interface StdioServerEntry {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to the minimal environment that every child gets; a name given here wins. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
}

/** A server on streamable HTTP. The headers go with every request to it. */
export interface HttpServerEntry {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface McpSourceOptions {
  /** The configured name: the `server` of its tools, and their first tag. */
  readonly name: string;
  readonly server: McpServerEntry;
  /** What a child may inherit from; only the names in `child-environment.ts` are taken. Nothing is inherited unless it is given. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Of one call, counted anew at each progress notification. 60 s unless told. */
  readonly timeoutMs?: number | undefined;
  /** Of one call, whatever progress it reports. 10 min unless told. */
  readonly maxTotalTimeoutMs?: number | undefined;
  /** Until a server has started and said its version. 30 s unless told. */
  readonly connectTimeoutMs?: number | undefined;
  /** One message of the server. 256 MiB unless told: results of 100 MB get through. */
  readonly maxMessageBytes?: number | undefined;
  /** How long a child may take to end after SIGTERM, before SIGKILL. 2 s unless told. */
  readonly killAfterMs?: number | undefined;
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number } | undefined;
  readonly clock?: Clock | undefined;
  /** Takes one probe line a call's start and end. */
  readonly onProbe?: ((line: string) => void) | undefined;
  /** Takes what a server writes to stderr, and what is odd about it. Never our stdout. */
  readonly onLog?: ((entry: McpLogEntry) => void) | undefined;
}

export interface Clock {
  /** Milliseconds; only differences count. */
  now(): number;
}

export interface McpLogEntry {
  readonly server: string;
  readonly from: "stderr" | "client";
  readonly text: string;
}

export interface McpLimits {
  readonly timeoutMs: number;
  readonly maxTotalTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly killAfterMs: number;
}

export const defaultMcpLimits: McpLimits = {
  timeoutMs: 60_000,
  maxTotalTimeoutMs: 600_000,
  connectTimeoutMs: 30_000,
  maxMessageBytes: 256 * 1024 * 1024,
  killAfterMs: 2_000,
};
