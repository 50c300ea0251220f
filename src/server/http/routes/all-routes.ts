import { z } from "zod";
import { loginLinkSchema } from "../../../protocol/http-operations.ts";
import { noticePage } from "../create-page.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { aliasRoutes } from "./alias-routes.ts";
import { cellRoutes } from "./cell-routes.ts";
import { chatRoutes } from "./chat-routes.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { fileRoutes } from "./file-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import { json, originOf, type Route, type RouteRequest, takesSandbox } from "./route.ts";
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

type LoginParts = Pick<ServerParts, "authenticator" | "publicUrl">;

/** Logs a browser in by a link that works once and disappears from the address bar at once. */
function loginRoutes(parts: LoginParts): Route[] {
  return [
    {
      method: "get",
      path: "/login",
      operationId: "login",
      summary: "Exchange the code of a one-time link for a cookie.",
      isOpen: true,
      query: z.object({ code: z.string().max(200).default("") }),
      responses: {
        303: { description: "The browser is logged in and is redirected to the page." },
        403: { description: "The link was used or has expired.", contentType: "text/html" },
      },
      handle: (request) => logIn(parts, request),
    },
    {
      method: "post",
      path: "/api/login-links",
      operationId: "createLoginLink",
      summary: "Create a one-time login link for the tenant of the request.",
      responses: { 201: { description: "The link.", schema: loginLinkSchema } },
      handle: (request) => createLoginLink(parts, request),
    },
    {
      method: "post",
      path: "/api/logout",
      operationId: "logout",
      summary: "Log this browser out.",
      responses: { 204: { description: "The browser is logged out." } },
      handle: ({ request }) => new Response(null, { status: 204, headers: { "set-cookie": parts.authenticator.logOut(request.headers) } }),
    },
  ];
}

function logIn({ authenticator }: LoginParts, { request, query }: RouteRequest): Response {
  // A link preview may send HEAD, which must not use up the code.
  if (request.method === "HEAD") throw new HttpFailure({ code: "METHOD_NOT_ALLOWED", message: "Use GET to open the link." });
  const cookie = authenticator.logIn(String(query["code"]));
  if (cookie === null) return noticePage("linkUsed");
  return new Response(null, { status: 303, headers: { location: "/", "set-cookie": cookie, "cache-control": "no-store" } });
}

function createLoginLink({ authenticator, publicUrl }: LoginParts, { request, principal }: RouteRequest): Response {
  const { code, expiresAt } = authenticator.createLoginCode(principal);
  return json({ url: `${originOf(publicUrl, request)}/login?code=${code}`, expiresAt }, { status: 201 });
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
    async handle({ request, principal: { tenant, tokenHash } }) {
      const { body, status, headers } = await mcp.fetch(request, { tenant, tokenHash });
      return new Response(body, { status, headers: new Headers(headers) }); // a copy, because the app adds headers
    },
  }));
}
