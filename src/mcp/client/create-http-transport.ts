import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { CallContext, CallContexts } from "./call-context.ts";
import { AnswerTap } from "./answer-tap.ts";

export interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  readonly contexts: CallContexts;
}

/** Streamable HTTP. Redirects to another origin are not followed, so that headers stay with the server they were meant for. */
export function createHttpTransport({ url, headers, maxMessageBytes, contexts }: HttpTransportOptions): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (target, init) => {
      const context = contexts.getStore();
      const response = await fetch(target, context === undefined ? init : { ...init, headers: withCallHeaders(init?.headers, context) });
      if (context === undefined) return response;
      if (!response.ok) return noteRefusal(response, context);
      return tapAnswer(response, new AnswerTap(response.headers.get("content-type"), maxMessageBytes, context));
    },
  });
}

/** Headers of the call win over those of the entry, `Authorization` too; those that make up the protocol stay as they are. */
function withCallHeaders(base: ConstructorParameters<typeof Headers>[0], context: CallContext): Headers {
  const headers = new Headers(base);
  for (const [name, value] of Object.entries(context.headers)) if (!isProtocolHeader(name)) headers.set(name, value);
  return headers;
}

function isProtocolHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return protocolHeaders.has(lower) || lower.startsWith("mcp-");
}

const protocolHeaders: ReadonlySet<string> = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "host",
  "last-event-id",
  "transfer-encoding",
]);

function noteRefusal(response: Response, context: CallContext): Response {
  context.status = response.status;
  context.retryAfter = response.headers.get("retry-after");
  return response;
}

function tapAnswer(response: Response, tap: AnswerTap): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          tap.end();
          controller.close();
          return;
        }
        tap.push(value);
        controller.enqueue(value);
      } catch (error) {
        tap.fail(error as Error);
        controller.error(error);
        void reader.cancel(error).catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
}
