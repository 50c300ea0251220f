import { z } from "zod";
import { count, httpUrl, milliseconds } from "../../protocol/setting.ts";
import { DEFAULT_CALL_TIMEOUT_MS } from "../backend-tool.ts";

const texts = z.record(z.string().min(1).max(200), z.string());

/** A program that is started for us and speaks over its standard input and output. */
export const stdioServerSchema = z.strictObject({
  command: z.string().min(1).describe("a program that speaks over stdio, see [mcp-servers.md](mcp-servers.md)"),
  args: z.array(z.string()).readonly().optional().describe("its arguments"),
  env: texts.optional().describe("variables that it gets besides the few that every program gets"),
  cwd: z.string().min(1).optional().describe("where it is started; the file's directory when it is left out"),
});

export const httpServerSchema = z.strictObject({
  url: httpUrl.describe("a server on streamable HTTP"),
  headers: texts.optional().describe("they go with every request to it"),
});

export type StdioServerEntry = Readonly<z.infer<typeof stdioServerSchema>>;

/** How a server is reached: the shape that desktop clients use for an entry of `mcpServers`. */
export type McpServerEntry = StdioServerEntry | Readonly<z.infer<typeof httpServerSchema>>;

export interface McpSourceOptions extends Partial<McpLimits> {
  /** The configured name: the `server` of its tools, and their first tag. */
  readonly name: string;
  readonly server: McpServerEntry;
  /** What a child may inherit from; only the names in `open-connection.ts` are taken. Nothing is inherited unless it is given. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
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

export const mcpLimitsSchema = z.strictObject({
  timeoutMs: milliseconds.default(DEFAULT_CALL_TIMEOUT_MS).describe("time limit for one call, counted anew at each progress notification"),
  maxTotalTimeoutMs: milliseconds.default(600_000).describe("time limit for one call, whatever progress it reports"),
  connectTimeoutMs: milliseconds.default(30_000).describe("until a server has started and said its version"),
  maxMessageBytes: count.default(256 * 1024 * 1024).describe("one message of a server"),
  killAfterMs: milliseconds.default(2_000).describe("how long a program may take to end after SIGTERM, before SIGKILL"),
});

export type McpLimits = Readonly<z.infer<typeof mcpLimitsSchema>>;

export const defaultMcpLimits: McpLimits = mcpLimitsSchema.parse({});
