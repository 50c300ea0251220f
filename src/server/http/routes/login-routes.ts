import { z } from "zod";
import { loginLinkSchema } from "../../../protocol/http-operations.ts";
import { loginPage, noticePage } from "../create-page.ts";
import { HttpFailure } from "../http-failure.ts";
import { toLoginUrl } from "../login-link.ts";
import type { ServerParts } from "../open-parts.ts";
import { json, originOf, readBody, tooLarge, type Route, type RouteRequest } from "./route.ts";

type LoginParts = Pick<ServerParts, "authenticator" | "publicUrl">;

const MAX_FORM_BYTES = 4096;
const linkUsed = { description: "The link was used or has expired.", contentType: "text/html" };

/**
 * Logs a browser in by a link that works once. Opening the link only shows the tenant: another site can open it, too, and would replace the login of this
 * browser without a question. The button of that page logs in.
 */
export function loginRoutes(parts: LoginParts): Route[] {
  return [
    {
      method: "get",
      path: "/login",
      operationId: "login",
      summary: "Show the tenant of a one-time link, with a button that logs in.",
      isOpen: true,
      query: z.object({ code: z.string().max(200).default("") }),
      responses: { 200: { description: "The page with the button.", contentType: "text/html" }, 403: linkUsed },
      handle: (request) => showLogin(parts, request),
    },
    {
      method: "post",
      path: "/login",
      operationId: "confirmLogin",
      summary: "Exchange the code of a one-time link for a cookie. Only the page of the link can do this.",
      isOpen: true,
      body: "form",
      responses: { 303: { description: "The browser is logged in and is redirected to the page." }, 403: linkUsed },
      handle: (request) => logIn(parts, request),
    },
    {
      method: "post",
      path: "/api/login-links",
      operationId: "createLoginLink",
      summary: "Create a one-time login link for the tenant of the request.",
      responses: { 201: { description: "The link.", schema: loginLinkSchema } },
      handle: (request) => createLink(parts, request),
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

function showLogin({ authenticator }: LoginParts, { request, query }: RouteRequest): Response {
  if (request.method === "HEAD") throw new HttpFailure({ code: "METHOD_NOT_ALLOWED", message: "Use GET to open the link." });
  const code = String(query["code"]);
  const found = authenticator.codes.find(code);
  if (found === null) return noticePage("linkUsed");
  return loginPage({ code, tenant: found.tenant, current: authenticator.identify(request.headers)?.tenant ?? null });
}

async function logIn({ authenticator }: LoginParts, { request }: RouteRequest): Promise<Response> {
  const body = await readBody(request, MAX_FORM_BYTES);
  if (body === null) throw tooLarge(MAX_FORM_BYTES);
  const code = new URLSearchParams(body.toString("utf8")).get("code") ?? "";
  const cookie = authenticator.logIn(code, request.headers);
  if (cookie === null) return noticePage("linkUsed");
  return new Response(null, { status: 303, headers: { location: "/", "set-cookie": cookie, "cache-control": "no-store" } });
}

function createLink({ authenticator, publicUrl }: LoginParts, { request, principal }: RouteRequest): Response {
  const { code, expiresAt } = authenticator.codes.create(principal);
  return json({ url: toLoginUrl(originOf(publicUrl, request), code), expiresAt }, { status: 201 });
}
