import { z } from "zod";
import { count, httpUrl, milliseconds } from "../../protocol/setting.ts";
import { DEFAULT_CALL_TIMEOUT_MS } from "../backend-tool.ts";

const textByName = z.record(z.string().min(1).max(200), z.string());

/** A server that we start as a child process and talk to over stdio. */
export const stdioServerSchema = z.strictObject({
  command: z.string().min(1).describe("the program of a server that uses stdio, see [mcp-servers.md](mcp-servers.md)"),
  args: z.array(z.string()).readonly().optional().describe("arguments of the program"),
  env: textByName.optional().describe("environment variables for the program, in addition to the few that every program inherits"),
  cwd: z.string().min(1).optional().describe("working directory of the program; default: the directory of the configuration file"),
});

export const httpServerSchema = z.strictObject({
  url: httpUrl.describe("the URL of a server that uses streamable HTTP"),
  headers: textByName.optional().describe("HTTP headers for every request to the server"),
});

export type StdioServerEntry = Readonly<z.infer<typeof stdioServerSchema>>;

/** How to reach a server: an entry of `mcpServers` as desktop clients write it. */
export type McpServerEntry = StdioServerEntry | Readonly<z.infer<typeof httpServerSchema>>;

export interface McpSourceOptions extends Partial<McpLimits> {
  /** The configured name. It becomes the `server` of its tools and their first tag. */
  readonly name: string;
  readonly server: McpServerEntry;
  /** Environment that a child process inherits from, limited to the names in `open-backend-connection.ts`. Default: none. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Wait before the next attempt after a failed one; it doubles with every failure. Default: 1 s, at most 60 s. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number } | undefined;
  /** Milliseconds since any fixed time, for the back-off. Default: `performance`. */
  readonly clock?: { now(): number } | undefined;
  /** Receives one probe line at the start and one at the end of a call. */
  readonly onProbe?: ((line: string) => void) | undefined;
  /** Receives what a server writes to stderr, and warnings of our client. */
  readonly onLog?: ((entry: McpLogEntry) => void) | undefined;
}

export interface McpLogEntry {
  readonly server: string;
  readonly from: "stderr" | "client";
  readonly text: string;
}

export const mcpLimitsSchema = z.strictObject({
  timeoutMs: milliseconds.default(DEFAULT_CALL_TIMEOUT_MS).describe("time limit for one call; each progress notification restarts it"),
  maxTotalTimeoutMs: milliseconds.default(600_000).describe("time limit for one call, regardless of progress notifications"),
  connectTimeoutMs: milliseconds.default(30_000).describe("time limit for starting a server and completing the MCP handshake"),
  maxMessageBytes: count.default(256 * 1024 * 1024).describe("largest message that a server may send"),
  killAfterMs: milliseconds.default(2_000).describe("time between SIGTERM and SIGKILL when a program is stopped"),
});

export type McpLimits = Readonly<z.infer<typeof mcpLimitsSchema>>;

export const defaultMcpLimits: McpLimits = mcpLimitsSchema.parse({});
