import { Hono, type Context } from "hono";
import { watchBody } from "../http-body.ts";
import { type Authenticator, type Principal, unauthorized } from "./create-authenticator.ts";
import { checkOrigin, checkOwnPage, type OriginRules, type WorkGate } from "./guard.ts";
import { HttpFailure, toFailureResponse } from "./http-failure.ts";
import type { Log } from "./create-log.ts";
import type { Metrics } from "./create-metrics.ts";
import { type Route, type RouteRequest, check, readJsonBody } from "./routes/route.ts";

export interface AppOptions {
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  readonly origins: OriginRules;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly work: WorkGate;
  /** Everything that is no route: the page. */
  readonly page: (request: Request, principal: Principal | null) => Promise<Response>;
}

const MAX_JSON_BYTES = 1024 * 1024;

/** The order of things for every request: who does it say it is for, who sends it, what does it ask, and then the answer. */
export function createApp({ routes, authenticator, origins, log, metrics, work, page }: AppOptions): Hono {
  const app = new Hono();
  for (const route of routes) app.on(route.method.toUpperCase(), toHonoPath(route.path), (context) => serve(route, context));
  app.all("*", (context) => observe(context, "page", async () => await page(context.req.raw, identify(context.req.raw))));
  return app;

  function serve(route: Route, context: Context): Promise<Response> {
    return observe(context, route.path, async () => {
      const request = context.req.raw;
      const principal = route.isOpen ? nobody : identify(request);
      if (principal === null) throw unauthorized();
      if (principal.via === "cookie") checkOwnPage(request);
      if (route.isForOperators && !principal.isOperator)
        throw new HttpFailure({ code: "OPERATORS_ONLY", message: "Only an operator may see what all tenants do." });
      const query = route.query === undefined ? {} : check(route.query, context.req.query(), "query");
      const { body: expected, maxBodyBytes = MAX_JSON_BYTES } = route;
      const body =
        expected === undefined || expected === "bytes"
          ? undefined
          : await readJsonBody(request, { schema: expected, maxBytes: maxBodyBytes });
      const parameters = toParameters(route.path, context.req.param());
      return await handle(route, { request, parameters, query: query as Record<string, unknown>, body, principal, signal: request.signal });
    });
  }

  async function handle(route: Route, request: RouteRequest): Promise<Response> {
    if (route.beginsWork === undefined) return await route.handle(request);
    const over = work.begin({ tenant: request.principal.tenant, route: route.operationId, ...route.beginsWork });
    try {
      return watchBody(await route.handle(request), over);
    } catch (error) {
      over();
      throw error;
    }
  }

  function identify(request: Request): Principal | null {
    return authenticator.identify(request.headers);
  }

  /** What went wrong is an answer, too. The query is never in the log: it can hold a code that lets somebody in. */
  async function observe(context: Context, route: string, work: () => Promise<Response>): Promise<Response> {
    const startedAt = performance.now();
    const request = context.req.raw;
    let response: Response;
    try {
      checkOrigin(request, origins);
      response = await work();
    } catch (error) {
      response = toFailureResponse(error);
      if (request.signal.aborted) return response; // to nobody
      if (response.status >= 500) log.error("request_failed", { route, reason: describe(error) });
    }
    const ms = performance.now() - startedAt;
    metrics.http.observe(ms / 1000);
    metrics.requests.add(1, { route, method: request.method, status: String(response.status) });
    log.debug("request", { method: request.method, path: context.req.path, status: response.status, ms: Math.round(ms) });
    return withHeaders(response);
  }
}

const nobody: Principal = { tenant: "", isOperator: false, tokenHash: null, via: "none" };

/** On every answer. What has its own rules for content has set them. */
function withHeaders(response: Response): Response {
  const { headers } = response;
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  headers.set("cross-origin-resource-policy", "same-origin");
  if (!headers.has("content-security-policy"))
    headers.set("content-security-policy", "default-src 'none'; sandbox; frame-ancestors 'none'");
  return response;
}

/** `{name}` becomes `:name`; with an ending behind it, one parameter of both. */
function toHonoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}\.(\w+)/g, String.raw`:$1{[^/]+\.$2}`).replaceAll(/\{(\w+)\}/g, ":$1");
}

function toParameters(path: string, found: Readonly<Record<string, string>>): Record<string, string> {
  const endings = Object.fromEntries([...path.matchAll(/\{(\w+)\}\.(\w+)/g)].map(([, name = "", ending = ""]) => [name, ending]));
  return Object.fromEntries(
    Object.entries(found).map(([name, value]) => [name, endings[name] === undefined ? value : value.slice(0, -endings[name].length - 1)]),
  );
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
