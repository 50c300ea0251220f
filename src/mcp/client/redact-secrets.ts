import type { McpServerEntry } from "./contract.ts";

/** Takes out of a text what the server's entry was given in confidence, since a server may well print it when it fails. */
export function createRedactor(server: McpServerEntry): (text: string) => string {
  const values = "url" in server ? Object.values(server.headers ?? {}) : Object.values(server.env ?? {});
  const secrets = values.flatMap((value) => [value, value.replace(/^\w+ /, "")]).filter((value) => value.length >= 8);
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((rest, secret) => rest.replaceAll(secret, "[hidden]"), text);
}
