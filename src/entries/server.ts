/** `sluice/server`: for programs that run a server. Has the parts that a configuration describes, the MCP server, and all of `sluice serve`. */
import "../require-node.ts";
export { loadConfiguration, type LoadedConfiguration, type LoadOptions } from "../config/load-configuration.ts";
export type { Configuration } from "../config/configuration-schema.ts";
export { openConfigured, type Configured, type ConfiguredOptions } from "../config/open-configured.ts";
export { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "../server/http/create-mcp-endpoint.ts";
export type { McpCaller } from "../server/mcp/mcp-parts.ts";
export { serveMcpStdio, type McpStdioOptions } from "../server/mcp/serve-mcp-stdio.ts";
export type { McpParts } from "../server/mcp/mcp-parts.ts";
export type { ServedTool, Surface } from "../server/mcp/surface.ts";
export { openServer, type RunningServer, type ServerOptions } from "../server/http/open-server.ts";
export { createLog, type Log } from "../server/http/create-log.ts";
