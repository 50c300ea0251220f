import { z } from "zod";
import { loginLinkSchema } from "../../protocol/http-operations.ts";
import { noticePage } from "../page/notice-page.ts";
import type { ServerParts } from "../server-parts.ts";
import { defineRoute, json, type Route } from "./define-route.ts";
import { originOf } from "./origin-of.ts";

/** How a browser is let in: by a link that works once, and leaves the address bar at once. */
export function loginRoutes(parts: ServerParts): Route[] {
  const { authenticator } = parts;
  return [
    defineRoute({
      method: "get",
      path: "/login",
      operationId: "login",
      summary: "Exchange the code of a one-time link for a cookie.",
      tag: "login",
      isOpen: true,
      query: z.object({ code: z.string().max(200).default("") }),
      answers: {
        303: { description: "Logged in; on to the page." },
        403: { description: "The link was used, or is too old.", contentType: "text/html" },
      },
      handle({ request, query }) {
        if (request.method === "HEAD") return new Response(null, { status: 405, headers: { allow: "GET" } }); // who only looks must not use the link up
        const cookie = authenticator.exchange(String(query["code"]));
        if (cookie === null) return noticePage("linkUsed");
        return new Response(null, { status: 303, headers: { location: "/", "set-cookie": cookie, "cache-control": "no-store" } });
      },
    }),
    defineRoute({
      method: "post",
      path: "/api/login-links",
      operationId: "createLoginLink",
      summary: "A new one-time link for a browser, of the tenant that asks.",
      tag: "login",
      answers: { 201: { description: "The link.", schema: loginLinkSchema } },
      handle({ request, principal: { tenant, isOperator } }) {
        const { code, expiresAt } = authenticator.newLoginCode({ tenant, isOperator });
        return json({ url: `${originOf(parts, request)}/login?code=${code}`, expiresAt }, { status: 201 });
      },
    }),
    defineRoute({
      method: "post",
      path: "/api/logout",
      operationId: "logout",
      summary: "Forget this browser.",
      tag: "login",
      answers: { 204: { description: "Done." } },
      handle: ({ request }) => new Response(null, { status: 204, headers: { "set-cookie": authenticator.logout(request.headers) } }),
    }),
  ];
}
