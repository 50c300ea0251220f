import { z } from "zod";
import type { ServerParts } from "../open-parts.ts";
import { aliasRoutes } from "./alias-routes.ts";
import { cellRoutes } from "./cell-routes.ts";
import { chatRoutes } from "./chat-routes.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { fileRoutes } from "./file-routes.ts";
import { loginRoutes } from "./login-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import { json, type Route, takesSandbox } from "./route.ts";
import { toOpenApi } from "./to-openapi.ts";
import { turnRoutes } from "./turn-routes.ts";

/** All routes of the server, and the OpenAPI document that describes them. */
export function allRoutes(parts: ServerParts): Route[] {
  const groups: [tag: string, routes: Route[]][] = [
    ["login", loginRoutes(parts)],
    ["operations", operationRoutes(parts)],
    ["chat", chatRoutes(parts)],
    ["conversations", [...conversationRoutes(parts), ...aliasRoutes(parts)]],
    ["turns", turnRoutes(parts)],
    ["cells", cellRoutes(parts)],
    ["files", fileRoutes(parts)],
    ["mcp", mcpRoutes(parts)],
  ];
  const document: Route = {
    method: "get",
    path: "/api/openapi.json",
    operationId: "openapi",
    summary: "Get this OpenAPI document.",
    responses: { 200: { description: "The API as OpenAPI 3.1.", schema: z.looseObject({ openapi: z.string() }) } },
    handle: () => json(toOpenApi(groups, parts.url)),
  };
  groups.push(["operations", [document]]);
  return groups.flatMap(([, routes]) => routes);
}

const mcpResponse = { description: "A response of the Model Context Protocol, in the client's version.", contentType: "application/json" };

/** `/mcp` over streamable HTTP, with the same authentication as all other routes. */
function mcpRoutes({ mcp }: Pick<ServerParts, "mcp">): Route[] {
  const summaries = { post: "Send an MCP message.", get: "Listen for MCP messages.", delete: "End the MCP connection." } as const;
  return (["post", "get", "delete"] as const).map((method) => ({
    method,
    path: "/mcp",
    operationId: `${method}Mcp`,
    summary: summaries[method],
    ...(method === "post" ? { body: "bytes" as const, beginsWork: takesSandbox } : {}),
    responses: { 200: mcpResponse },
    async handle({ request, principal: { tenant, subject } }) {
      const { body, status, headers } = await mcp.fetch(request, { tenant, subject });
      return new Response(body, { status, headers: new Headers(headers) }); // a copy, because the app adds headers
    },
  }));
}
