import type { z } from "zod";
import type { Principal } from "../contract.ts";

/** What a handler gets: everything of the request that was looked at, and checked, already. */
export interface RouteRequest {
  readonly request: Request;
  /** From the path. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The query, as its schema gives it. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The body, as its schema gives it. Undefined for routes that read it themselves. */
  readonly body: unknown;
  readonly principal: Principal;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** One way in, described once: the app serves it, the OpenAPI document tells of it, and a test holds both together. */
export interface Route {
  readonly method: "get" | "post" | "patch" | "delete";
  /** `/api/turns/{turnId}`. A file name may have its ending behind the parameter: `/artifacts/{contentHash}.png`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly tag: "chat" | "conversations" | "turns" | "cells" | "files" | "operations" | "login" | "mcp";
  /** Nobody needs a token for it. */
  readonly isOpen?: boolean;
  /** Only operators. */
  readonly isForOperators?: boolean;
  /** It begins something that takes a sandbox or time: not when the server is stopping, and of one client not more at once than this. */
  readonly beginsWork?: { readonly maxPerClient?: number };
  readonly query?: z.ZodObject;
  readonly headers?: readonly { readonly name: string; readonly description: string }[];
  /** A schema for JSON; `bytes` when the handler takes the body as it comes. */
  readonly body?: z.ZodType | "bytes";
  readonly maxBodyBytes?: number;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  handle(request: RouteRequest): Promise<Response> | Response;
}

export interface RouteAnswer {
  readonly description: string;
  /** Of a JSON body. */
  readonly schema?: z.ZodType;
  /** Of a body that is something else. */
  readonly contentType?: string;
}

/** So that the compiler looks at a route where it is written. */
export function defineRoute(route: Route): Route {
  return route;
}

/** JSON, not to be kept by anybody on the way. */
export function json(body: unknown, { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {}): Response {
  return jsonText(JSON.stringify(body), { status, headers });
}

export function jsonText(
  text: string,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  });
}
