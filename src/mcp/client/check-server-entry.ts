import { UsageError } from "../../errors/sluice-error.ts";
import type { McpServerEntry } from "./contract.ts";

/** Throws for an entry that can never work. */
export function checkServerEntry(name: string, server: McpServerEntry): void {
  if ("url" in server) checkUrl(name, server.url);
  else if (!server.command) throw refuse(`The server ${JSON.stringify(name)} has neither a command nor a url.`);
}

function checkUrl(name: string, text: string): void {
  const url = URL.parse(text);
  if (url === null) throw refuse(`The url of the server ${JSON.stringify(name)} is no URL: ${text}`);
  if (url.protocol === "http:" || url.protocol === "https:") return;
  throw refuse(`The url of the server ${JSON.stringify(name)} must begin with http:// or https://, not ${url.protocol}//`);
}

function refuse(message: string): UsageError {
  return new UsageError({ code: "MCP_SERVER_ENTRY_INVALID", message, hint: "See docs/mcp-servers.md for the shape of mcpServers." });
}
