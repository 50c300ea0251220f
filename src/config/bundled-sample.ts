import path from "node:path";
import type { ServerConfiguration } from "./loaded-configuration.ts";

const isBuilt = path.extname(import.meta.filename) === ".js";

/** The sample that comes with the package, for whoever has configured nothing yet: one MCP server with made-up market data, as a process of its own. */
export function bundledSample(): Readonly<Record<string, ServerConfiguration>> {
  // Sources are run as they are; a built package has what was made of them beside its own modules.
  const program = isBuilt ? "../examples/backends/market/market-server.js" : "../../examples/backends/market/market-server.ts";
  return { market: { command: process.execPath, args: [path.join(import.meta.dirname, program)] } };
}
