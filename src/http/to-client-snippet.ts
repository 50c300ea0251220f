/** What goes into the configuration of a desktop client. */
export function toClientSnippet({ url, token }: { url: string; token: string | null }): string {
  const server = { url: `${url}/mcp`, ...(token === null ? {} : { headers: { Authorization: `Bearer ${token}` } }) };
  return JSON.stringify({ mcpServers: { sluice: server } }, null, 2);
}
