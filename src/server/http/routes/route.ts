import type { z } from "zod";
import { readBody } from "../../http-body.ts";
import { describeZodIssues } from "../../../errors/schema-problems.ts";
import type { Principal } from "../create-authenticator.ts";
import { HttpFailure } from "../http-failure.ts";

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

/** `beginsWork` of requests that may each wait for a sandbox: past this many of one client, a further one would only wait. */
export const takesSandbox: Required<NonNullable<Route["beginsWork"]>> = { maxPerClient: 64 };

export interface RouteAnswer {
  readonly description: string;
  /** Of a JSON body. */
  readonly schema?: z.ZodType;
  /** Of a body that is something else. */
  readonly contentType?: string;
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

/** The server as clients reach it: as it was told, else as this one did. What a proxy says in headers is not asked: anybody can say it. */
export function originOf(publicUrl: string | null, request: Request): string {
  return publicUrl ?? `http://${request.headers.get("host")}`; // its Host was checked
}

/** A JSON body within its cap, held against its schema. Another content type is refused: a form of somebody else's page can send those without asking. */
export async function readJsonBody(request: Request, { schema, maxBytes }: { schema: z.ZodType; maxBytes: number }): Promise<unknown> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json")
    throw new HttpFailure({
      code: "CONTENT_TYPE_WRONG",
      message: `The body must be application/json, and is ${type === undefined ? "of no type" : JSON.stringify(type)}.`,
    });
  const body = await readBody(request, maxBytes);
  if (body === null) throw tooLarge(maxBytes);
  return check(schema, parse(body.toString("utf8")), "body");
}

/** `check` with what is wrong in the order in which it stands there. */
export function check(schema: z.ZodType, value: unknown, where: "body" | "query" | "path"): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = describeZodIssues({ schema, value, issues: parsed.error.issues }).map(({ path, problem }) => ({ path, problem }));
  throw new HttpFailure({
    code: "REQUEST_INVALID",
    message: `The ${where} is not as it must be: ${problems.map(({ path, problem }) => `${path || "the whole"}: ${problem}`).join(" ")}`,
    details: { problems },
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFailure({ code: "REQUEST_INVALID", message: "The body is no JSON." });
  }
}

export function tooLarge(maxBytes: number): HttpFailure {
  return new HttpFailure({
    code: "BODY_TOO_LARGE",
    message: `The body is longer than the ${maxBytes} bytes that are allowed here.`,
  });
}
