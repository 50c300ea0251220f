import type { z } from "zod";
import { describeZodIssues } from "../../../errors/schema-problems.ts";
import { createJsonShape } from "../../../text/json-shape.ts";
import type { Principal } from "../authenticator.ts";
import { HttpFailure } from "../http-failure.ts";

/** A request after authentication, with parsed and checked parts. */
export interface RouteRequest {
  readonly request: Request;
  readonly parameters: Readonly<Record<string, string>>;
  /** The query, parsed by the schema of the route. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The body, parsed by the schema of the route. Undefined if the handler reads it itself. */
  readonly body: unknown;
  readonly principal: Principal;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** One route. The app serves it and the OpenAPI document describes it; a test checks that the two agree. */
export interface Route {
  readonly method: "get" | "post" | "patch" | "delete";
  /** `/api/turns/{turnId}`. A parameter may be followed by a file extension: `/artifacts/{contentHash}.png`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** Needs no token. */
  readonly isOpen?: boolean;
  readonly isForOperators?: boolean;
  /** Set for a request that takes a sandbox or much time. It is refused while the server stops, and when `maxPerClient` of the client are already running. */
  readonly beginsWork?: { readonly maxPerClient?: number };
  readonly query?: z.ZodObject;
  readonly headers?: readonly { readonly name: string; readonly description: string }[];
  /** The schema of a JSON body; `bytes` or `form` if the handler reads the body itself. */
  readonly body?: z.ZodType | "bytes" | "form";
  readonly maxBodyBytes?: number;
  /** By HTTP status. */
  readonly responses: Readonly<Record<number, RouteResponse>>;
  handle(request: RouteRequest): Promise<Response> | Response;
}

/** `beginsWork` of requests that need a sandbox. A client that has this many is refused, because more would only wait. */
export const takesSandbox: Required<NonNullable<Route["beginsWork"]>> = { maxPerClient: 64 };

export interface RouteResponse {
  readonly description: string;
  /** The schema of a JSON body. */
  readonly schema?: z.ZodType;
  /** The type of any other body. */
  readonly contentType?: string;
}

interface JsonOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A JSON response that no cache may store. */
export function json(body: unknown, options: JsonOptions = {}): Response {
  return jsonText(JSON.stringify(body), options);
}

/** Like `json`, for a body that is JSON text already. */
export function jsonText(text: string, { status, headers }: JsonOptions = {}): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  });
}

/** The public address, else the host of this request, which has been checked. `X-Forwarded-*` headers are ignored, because any client can send them. */
export function originOf(publicUrl: string | null, request: Request): string {
  return publicUrl ?? `http://${request.headers.get("host")}`;
}

/**
 * Reads a JSON body of limited size and checks it. Throws CONTENT_TYPE_WRONG, BODY_TOO_LARGE or REQUEST_INVALID.
 * Other content types are refused because a form on a foreign page can send them without a CORS preflight.
 */
export async function readJsonBody(request: Request, { schema, maxBytes }: { schema: z.ZodType; maxBytes: number }): Promise<unknown> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json")
    throw new HttpFailure({
      code: "CONTENT_TYPE_WRONG",
      message: `The content type of the body must be application/json, ${type === undefined ? "but is missing" : `not ${JSON.stringify(type)}`}.`,
    });
  const body = await readJsonBytes(request, maxBytes);
  if (body === null) throw tooLarge(maxBytes);
  return checkSchema(schema, parseJson(body.toString("utf8")), "body");
}

/** Parses a value with a schema. Throws REQUEST_INVALID with all problems, in the order of the value. */
export function checkSchema(schema: z.ZodType, value: unknown, where: "body" | "query" | "path"): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = describeZodIssues({ schema, value, issues: parsed.error.issues }).map(({ path, problem }) => ({ path, problem }));
  throw new HttpFailure({
    code: "REQUEST_INVALID",
    message: `The ${where} is invalid: ${problems.map(({ path, problem }) => (path === "" ? problem : `${path}: ${problem}`)).join(" ")}`,
    details: { problems },
  });
}

/**
 * Reads the JSON body of a request into memory. Returns null if it is larger than `maxBytes`. Throws REQUEST_INVALID if parsing it could take too long;
 * the rest is read and forgotten, because a client that still sends would not see the answer.
 */
export async function readJsonBytes(request: Request, maxBytes: number): Promise<Buffer | null> {
  const shape = createJsonShape();
  let problem = null as string | null;
  const body = await readBody(request, maxBytes, (chunk) => (problem ??= shape(chunk)) === null);
  if (problem === null || body === null) return body;
  const hint = "Send a flatter or smaller body, or upload the data as a file (POST /api/conversations/{conversationId}/files).";
  throw new HttpFailure({ code: "REQUEST_INVALID", message: `The body takes too long to parse. ${problem}`, hint });
}

/** Reads the body of a request into memory. Returns null if it is larger than `maxBytes`. Chunks for which `isKept` is false are left out. */
export async function readBody(
  request: Request,
  maxBytes: number,
  isKept: (chunk: Uint8Array) => boolean = () => true,
): Promise<Buffer | null> {
  // Check the header first: as long as nothing has touched `request.body`, the server keeps the connection open.
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    if (isKept(chunk)) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFailure({ code: "REQUEST_INVALID", message: "The body is not valid JSON." });
  }
}

export function tooLarge(maxBytes: number): HttpFailure {
  return new HttpFailure({ code: "BODY_TOO_LARGE", message: `The body is larger than the limit of ${maxBytes} bytes.` });
}

/** Returns the same response and calls `onEnd` once: when the last byte was read, or when the reader left or the body failed (`wasCutShort`). */
export function watchBody({ body, status, statusText, headers }: Response, onEnd: (wasCutShort: boolean) => void): Response {
  if (body === null) onEnd(false);
  const watched = body?.pipeThrough(new TransformStream({ flush: () => onEnd(false), cancel: () => onEnd(true) })) ?? null;
  return new Response(watched, { status, statusText, headers });
}
