/** `sluice/server`: for programs that serve others. Parts from a configuration, the MCP server over them, and all of `sluice serve`. */
import "../require-node.ts";
export { loadConfiguration, type LoadOptions } from "../config/load-configuration.ts";
export type { Configuration, LoadedConfiguration } from "../config/contract.ts";
export { openConfigured, type Configured, type ConfiguredOptions } from "../configured/open-configured.ts";
export { createMcpEndpoint, type McpCaller, type McpEndpoint, type McpEndpointOptions } from "../mcp/server/create-mcp-endpoint.ts";
export { serveMcpStdio, type McpStdioOptions } from "../mcp/server/serve-mcp-stdio.ts";
export type { McpParts } from "../mcp/server/mcp-parts.ts";
export type { ServedTool, Surface } from "../mcp/server/mcp-parts.ts";
export { openServer, type RunningServer, type ServerOptions } from "../http/open-server.ts";
export { createLog, type Log } from "../http/log/create-log.ts";
