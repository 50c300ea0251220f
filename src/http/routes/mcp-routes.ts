import type { ServerParts } from "../server-parts.ts";
import { defineRoute, type Route } from "./define-route.ts";

/** Calls of one tenant at once. Each may wait for a sandbox; what is past this would only wait. */
const MAX_CALLS_PER_CLIENT = 64;

const answer = { description: "As the Model Context Protocol says, in the client's version of it.", contentType: "application/json" };

/** `/mcp` over streamable HTTP, behind the same door as everything else. */
export function mcpRoutes({ mcp }: ServerParts): Route[] {
  const summaries = { post: "Send a message.", get: "Listen for messages.", delete: "End the session." } as const;
  return (["post", "get", "delete"] as const).map((method) =>
    defineRoute({
      method,
      path: "/mcp",
      operationId: `${method}Mcp`,
      summary: summaries[method],
      tag: "mcp",
      ...(method === "post" ? { body: "bytes" as const, beginsWork: { maxPerClient: MAX_CALLS_PER_CLIENT } } : {}),
      answers: { 200: answer },
      async handle({ request, principal: { tenant, tokenHash } }) {
        const { body, status, headers } = await mcp.fetch(request, { tenant, tokenHash });
        return new Response(body, { status, headers: new Headers(headers) }); // so that headers can be added to it
      },
    }),
  );
}
