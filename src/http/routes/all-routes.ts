import { z } from "zod";
import { toOpenApi } from "../openapi/to-openapi.ts";
import type { ServerParts } from "../server-parts.ts";
import { aliasRoutes } from "./alias-routes.ts";
import { cellRoutes } from "./cell-routes.ts";
import { chatRoutes } from "./chat-routes.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { defineRoute, json, type Route } from "./define-route.ts";
import { fileRoutes } from "./file-routes.ts";
import { loginRoutes } from "./login-routes.ts";
import { mcpRoutes } from "./mcp-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import { turnRoutes } from "./turn-routes.ts";

/** Every way in, and the document that tells of them. */
export function allRoutes(parts: ServerParts): Route[] {
  const routes: Route[] = [
    ...loginRoutes(parts),
    ...operationRoutes(parts),
    ...chatRoutes(parts),
    ...conversationRoutes(parts),
    ...aliasRoutes(parts),
    ...turnRoutes(parts),
    ...cellRoutes(parts),
    ...fileRoutes(parts),
    ...mcpRoutes(parts),
  ];
  const document = defineRoute({
    method: "get",
    path: "/api/openapi.json",
    operationId: "openapi",
    summary: "This document.",
    tag: "operations",
    answers: { 200: { description: "OpenAPI 3.1.", schema: z.looseObject({ openapi: z.string() }) } },
    handle: () => json(toOpenApi([...routes, document], parts)),
  });
  return [...routes, document];
}
