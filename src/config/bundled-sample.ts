import path from "node:path";
import type { ServerConfiguration } from "./contract.ts";

/** The sample that comes with the package, for whoever has configured nothing yet: one MCP server with made-up market data, as a process of its own. */
export function bundledSample(): Readonly<Record<string, ServerConfiguration>> {
  // Sources are run as they are, a built package has JavaScript in the same places.
  const extension = path.extname(import.meta.filename);
  const program = path.join(import.meta.dirname, "../../examples/backends/market", `market-server${extension}`);
  return { market: { command: process.execPath, args: [program] } };
}
