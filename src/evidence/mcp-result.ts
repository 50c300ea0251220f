/** The parts of an MCP tool result that we know. Everything a server sends is untrusted: each field is looked at before it is used. */
export type McpContent = Readonly<Record<string, unknown>>;

const contentTypes: ReadonlySet<unknown> = new Set(["text", "image", "audio", "resource", "resource_link"]);

/** Whether a value looks like what `tools/call` returns, and not like data that happens to have a `content`. */
export function isMcpResult(output: unknown): boolean {
  if (!isObject(output)) return false;
  const { content, structuredContent } = output;
  if (structuredContent !== undefined && (content === undefined || Array.isArray(content))) return true;
  return Array.isArray(content) && content.length > 0 && content.every((part) => isObject(part) && contentTypes.has(part["type"]));
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
