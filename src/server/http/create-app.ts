import { isIP } from "node:net";
import os from "node:os";
import { Hono, type Context } from "hono";
import { runAsTenant } from "../../concurrency/tenant.ts";
import { type Authenticator, type Principal, unauthorized } from "./authenticator.ts";
import type { WorkLimiter } from "./client-limits.ts";
import type { Log } from "./create-log.ts";
import type { Metrics } from "./create-metrics.ts";
import { HttpFailure, toFailureResponse } from "./http-failure.ts";
import { checkSchema, readJsonBody, type Route, type RouteRequest, watchBody } from "./routes/route.ts";

export interface AppOptions {
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  /** Called for each request with a valid token or login. May throw an HttpFailure. */
  readonly onIdentified?: (request: Request, tenant: string) => void;
  readonly origins: OriginRules;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly workLimiter: WorkLimiter;
  /** Answers requests that match no route. */
  readonly page: (request: Request, principal: Principal | null) => Promise<Response>;
}

export interface OriginRules {
  /** Allowed host names besides localhost, this machine's name and IP addresses. */
  readonly allowedHosts: readonly string[];
  /** The address that clients use. Its host and origin are allowed, also behind a proxy that does not pass on `Host`. */
  readonly publicUrl?: string | null;
}

const MAX_JSON_BYTES = 1024 * 1024;

/** Serves the routes. For each request, in this order: check host and origin, identify the sender, check rights and input, run the handler. */
export function createApp({ routes, authenticator, onIdentified, origins, log, metrics, workLimiter, page }: AppOptions): Hono {
  const app = new Hono();
  for (const route of routes) app.on(route.method.toUpperCase(), toHonoPath(route.path), (context) => serve(route, context));
  app.all("*", (context) => observe(context, "page", async () => await page(context.req.raw, identify(context.req.raw))));
  return app;

  function serve(route: Route, context: Context): Promise<Response> {
    return observe(context, route.path, async () => {
      const request = context.req.raw;
      const principal = route.isOpen ? anonymous : identify(request);
      if (principal === null) throw unauthorized();
      if (principal.via === "cookie" || route.isOpen) checkOwnPage(request);
      if (route.isForOperators && !principal.isOperator)
        throw new HttpFailure({ code: "OPERATORS_ONLY", message: "Only operators may see the data of all tenants." });
      const query = route.query === undefined ? {} : checkSchema(route.query, context.req.query(), "query");
      const { body: schema, maxBodyBytes = MAX_JSON_BYTES } = route;
      const body =
        schema === undefined || typeof schema === "string" ? undefined : await readJsonBody(request, { schema, maxBytes: maxBodyBytes });
      const parameters = toParameters(route.path, context.req.param());
      return await handle(route, { request, parameters, query: query as Record<string, unknown>, body, principal, signal: request.signal });
    });
  }

  function identify(request: Request): Principal | null {
    const principal = authenticator.identify(request.headers);
    if (principal !== null) onIdentified?.(request, principal.tenant);
    return principal;
  }

  async function handle(route: Route, request: RouteRequest): Promise<Response> {
    const { tenant } = request.principal;
    const run = (): Promise<Response> | Response => runAsTenant(tenant, () => route.handle(request));
    if (route.beginsWork === undefined) return await run();
    const end = workLimiter.begin({ tenant, route: route.operationId, ...route.beginsWork });
    try {
      return watchBody(await run(), end);
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Turns errors into responses, measures and logs. The query is never logged: it can contain a login code. */
  async function observe(context: Context, route: string, answer: () => Promise<Response>): Promise<Response> {
    const startedAt = performance.now();
    const request = context.req.raw;
    let response: Response;
    try {
      checkOrigin(request, origins);
      response = await answer();
    } catch (error) {
      response = toFailureResponse(error);
      if (request.signal.aborted) return response; // the client has disconnected
      if (response.status >= 500) log.error("request_failed", { route, reason: describe(error) });
    }
    const ms = performance.now() - startedAt;
    metrics.http.observe(ms / 1000);
    metrics.requests.add(1, { route, method: request.method, status: String(response.status) });
    log.debug("request", { method: request.method, path: context.req.path, status: response.status, ms: Math.round(ms) });
    return addSecurityHeaders(response);
  }
}

const anonymous: Principal = { tenant: "", isOperator: false, subject: null, via: "none" };

/**
 * Refuses requests from foreign web pages. A page that rebinds its DNS name to this server has that name in `Host`; one that sends a cross-site request has its
 * own address in `Origin`. An IP address in `Host` is safe, because it needs no DNS.
 */
export function checkOrigin(request: Request, { allowedHosts, publicUrl = null }: OriginRules): void {
  const host = request.headers.get("host") ?? "";
  const name = toHostName(host);
  const allowedNames = ["localhost", os.hostname(), ...allowedHosts, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])];
  if (name === null || !(isIP(name) !== 0 || allowedNames.some((allowed) => allowed.toLowerCase() === name)))
    throw new HttpFailure({
      code: "HOST_NOT_ALLOWED",
      message: `The host ${JSON.stringify(host.slice(0, 200))} is not allowed.`,
      hint: "Use the address that the server printed, or add the host to server.publicUrl or server.allowedHosts in the configuration.",
    });
  const origin = request.headers.get("origin");
  if (origin !== null && origin !== publicUrl && URL.parse(origin)?.host !== host.toLowerCase())
    throw new HttpFailure({
      code: "ORIGIN_NOT_ALLOWED",
      message: `A page of ${JSON.stringify(origin.slice(0, 200))} sent this request. Only pages of this server may.`,
    });
}

/**
 * Requires proof that a request with a cookie, or one that logs in, comes from our own page, unless it only reads. Every browser sends one of these headers.
 * `checkOrigin` has already checked the origin.
 */
function checkOwnPage(request: Request): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin")
    throw new HttpFailure({
      code: "ORIGIN_NOT_ALLOWED",
      message: "A page of another site sent this request. Only pages of this server may.",
    });
  if (site === null && request.headers.get("origin") === null)
    throw new HttpFailure({
      code: "ORIGIN_MISSING",
      message: "A request with a cookie or a login must have an Origin or Sec-Fetch-Site header.",
    });
}

function toHostName(host: string): string | null {
  const url = URL.parse(`http://${host}/`);
  if (url === null || host === "" || /[/@?#\\]/.test(host)) return null;
  return url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
}

/** Adds the security headers of every response. A response may bring its own content security policy and referrer policy. */
function addSecurityHeaders(response: Response): Response {
  const { headers } = response;
  headers.set("x-content-type-options", "nosniff");
  if (!headers.has("referrer-policy")) headers.set("referrer-policy", "no-referrer");
  headers.set("cross-origin-resource-policy", "same-origin");
  if (!headers.has("content-security-policy"))
    headers.set("content-security-policy", "default-src 'none'; sandbox; frame-ancestors 'none'");
  return response;
}

/** `{name}` becomes `:name`. A file extension after it becomes part of the parameter, because Hono cannot separate them. */
function toHonoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}\.(\w+)/g, String.raw`:$1{[^/]+\.$2}`).replaceAll(/\{(\w+)\}/g, ":$1");
}

/** The parameters of the path, without file extensions. */
function toParameters(path: string, matched: Readonly<Record<string, string>>): Record<string, string> {
  const suffixes = Object.fromEntries([...path.matchAll(/\{(\w+)\}(\.\w+)/g)].map(([, name = "", suffix = ""]) => [name, suffix]));
  return Object.fromEntries(
    Object.entries(matched).map(([name, value]) => [name, value.slice(0, value.length - (suffixes[name]?.length ?? 0))]),
  );
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
