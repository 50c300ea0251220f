import { z } from "zod";
import { toOpenApi } from "./to-openapi.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { aliasRoutes } from "./alias-routes.ts";
import { cellRoutes } from "./cell-routes.ts";
import { chatRoutes } from "./chat-routes.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { json, originOf, type Route, takesSandbox } from "./route.ts";
import { fileRoutes } from "./file-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import { turnRoutes } from "./turn-routes.ts";
import { loginLinkSchema } from "../../../protocol/http-operations.ts";
import { noticePage } from "../create-page.ts";

/** Every way in, and the document that tells of them. */
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
    summary: "This document.",
    answers: { 200: { description: "OpenAPI 3.1.", schema: z.looseObject({ openapi: z.string() }) } },
    handle: () => json(toOpenApi(groups, parts.url)),
  };
  groups.push(["operations", [document]]);
  return groups.flatMap(([, routes]) => routes);
}

/** How a browser is let in: by a link that works once, and leaves the address bar at once. */
function loginRoutes({ authenticator, publicUrl }: Pick<ServerParts, "authenticator" | "publicUrl">): Route[] {
  return [
    {
      method: "get",
      path: "/login",
      operationId: "login",
      summary: "Exchange the code of a one-time link for a cookie.",
      isOpen: true,
      query: z.object({ code: z.string().max(200).default("") }),
      answers: {
        303: { description: "Logged in; on to the page." },
        403: { description: "The link was used, or is too old.", contentType: "text/html" },
      },
      handle({ request, query }) {
        if (request.method === "HEAD") throw new HttpFailure({ code: "METHOD_NOT_ALLOWED", message: "Only GET uses the link up." });
        const cookie = authenticator.exchange(String(query["code"]));
        if (cookie === null) return noticePage("linkUsed");
        return new Response(null, { status: 303, headers: { location: "/", "set-cookie": cookie, "cache-control": "no-store" } });
      },
    },
    {
      method: "post",
      path: "/api/login-links",
      operationId: "createLoginLink",
      summary: "A new one-time link for a browser, of the tenant that asks.",
      answers: { 201: { description: "The link.", schema: loginLinkSchema } },
      handle({ request, principal: { tenant, isOperator } }) {
        const { code, expiresAt } = authenticator.newLoginCode({ tenant, isOperator });
        return json({ url: `${originOf(publicUrl, request)}/login?code=${code}`, expiresAt }, { status: 201 });
      },
    },
    {
      method: "post",
      path: "/api/logout",
      operationId: "logout",
      summary: "Forget this browser.",
      answers: { 204: { description: "Done." } },
      handle: ({ request }) => new Response(null, { status: 204, headers: { "set-cookie": authenticator.logout(request.headers) } }),
    },
  ];
}

const answer = { description: "As the Model Context Protocol says, in the client's version of it.", contentType: "application/json" };

/** `/mcp` over streamable HTTP, behind the same door as everything else. */
function mcpRoutes({ mcp }: Pick<ServerParts, "mcp">): Route[] {
  const summaries = { post: "Send a message.", get: "Listen for messages.", delete: "End the session." } as const;
  return (["post", "get", "delete"] as const).map((method) => ({
    method,
    path: "/mcp",
    operationId: `${method}Mcp`,
    summary: summaries[method],
    ...(method === "post" ? { body: "bytes" as const, beginsWork: takesSandbox } : {}),
    answers: { 200: answer },
    async handle({ request, principal: { tenant, tokenHash } }) {
      const { body, status, headers } = await mcp.fetch(request, { tenant, tokenHash });
      return new Response(body, { status, headers: new Headers(headers) }); // so that headers can be added to it
    },
  }));
}
