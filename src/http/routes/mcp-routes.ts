import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import { defineRoute, type Route } from "./define-route.ts";

/** Calls of one tenant at once. Each may wait for a sandbox; what is past this would only wait. */
const MAX_CALLS_PER_CLIENT = 64;

const answer = { description: "As the Model Context Protocol says, in the client's version of it.", contentType: "application/json" };

/** `/mcp` over streamable HTTP, behind the same door as everything else. */
export function mcpRoutes({ mcp }: ServerParts): Route[] {
  const calls = new Map<string, number>();
  const summaries = { post: "Send a message.", get: "Listen for messages.", delete: "End the session." } as const;
  return (["post", "get", "delete"] as const).map((method) =>
    defineRoute({
      method,
      path: "/mcp",
      operationId: `${method}Mcp`,
      summary: summaries[method],
      tag: "mcp",
      ...(method === "post" ? { body: "bytes" as const } : {}),
      answers: { 200: answer },
      async handle({ request, principal: { tenant, tokenHash } }) {
        if (method !== "post") return withOwnHeaders(await mcp.fetch(request, { tenant, tokenHash }));
        const running = calls.get(tenant) ?? 0;
        if (running >= MAX_CALLS_PER_CLIENT) throw tooMany();
        calls.set(tenant, running + 1);
        const end = once(() => {
          const left = calls.get(tenant)! - 1;
          if (left === 0) calls.delete(tenant);
          else calls.set(tenant, left);
        });
        try {
          return withOwnHeaders(await mcp.fetch(request, { tenant, tokenHash }), end);
        } catch (error) {
          end();
          throw error;
        }
      },
    }),
  );
}

/** So that headers can be added to it. `onEnd`: the last byte of it was taken, or nobody wants it any more. */
function withOwnHeaders({ body, status, headers }: Response, onEnd: () => void = () => {}): Response {
  if (body === null) onEnd();
  const watched = body?.pipeThrough(new TransformStream({ flush: onEnd, cancel: onEnd })) ?? null;
  return new Response(watched, { status, headers: new Headers(headers) });
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

function tooMany(): HttpFailure {
  return new HttpFailure({
    status: 429,
    code: "TOO_MANY_CALLS",
    message: `${MAX_CALLS_PER_CLIENT} calls of this client are being answered already.`,
    retryAfterSeconds: 2,
  });
}
