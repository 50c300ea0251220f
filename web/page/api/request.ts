import type { z } from "zod";
import { httpErrorSchema } from "../../../src/protocol/http-error.ts";
import { texts } from "../../texts.ts";
import { ApiError } from "./api-error.ts";
import { parseExact } from "./parse-exact.ts";

interface RequestOptions {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  readonly json?: unknown;
  readonly body?: Blob;
  readonly signal?: AbortSignal;
}

/** Sends a request and validates the answer. */
export async function request<Answer>(path: string, schema: z.ZodType<Answer>, options: RequestOptions = {}): Promise<Answer> {
  const response = await send(path, options);
  return schema.parse(parseExact(await response.text()));
}

/** Sends a request. Throws an ApiError if the server refuses it. */
export async function send(path: string, { method = "GET", json, body, signal }: RequestOptions = {}): Promise<Response> {
  const response = await fetch(path, {
    method,
    signal,
    credentials: "same-origin",
    headers: json === undefined ? {} : { "content-type": "application/json" },
    body: json === undefined ? body : JSON.stringify(json),
  });
  if (!response.ok) throw await toError(response);
  return response;
}

export async function toError(response: Response): Promise<ApiError> {
  const { status } = response;
  const body = httpErrorSchema.safeParse(await response.json().catch(() => null));
  if (body.success) return new ApiError({ status, ...body.data.error });
  return new ApiError({ status, code: "HTTP_ERROR", message: texts.conversation.httpError(status) });
}
