import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { OutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { CallContext, CallContexts } from "./call-context.ts";
import { AnswerFilter } from "./answer-filter.ts";

export interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  readonly contexts: CallContexts;
  readonly reader: OutputReader;
}

/** Streamable HTTP. Redirects to another origin are not followed, so that headers stay with the server they were meant for. */
export function createHttpTransport(options: HttpTransportOptions): StreamableHTTPClientTransport {
  const { url, headers, maxMessageBytes, contexts, reader } = options;
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (target, init) => {
      const context = contexts.getStore();
      const response = await fetch(target, context === undefined ? init : { ...init, headers: withCallHeaders(init?.headers, context) });
      if (context === undefined) return response;
      if (!response.ok) return noteRefusal(response, context);
      const contentType = response.headers.get("content-type");
      return filterAnswer(response, new AnswerFilter({ contentType, maxBytes: maxMessageBytes, context, reader }));
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

function filterAnswer(response: Response, filter: AnswerFilter): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        // It may be a while until there is something for the SDK, and a pull that gives nothing is not repeated.
        for (let isGiven = false; !isGiven;) {
          const { done, value } = await reader.read();
          const passed = done ? await filter.end() : await filter.push(value);
          for (const bytes of passed) controller.enqueue(bytes);
          if (done) return controller.close();
          isGiven = passed.length > 0;
        }
      } catch (error) {
        filter.fail(error as Error);
        controller.error(error);
        void reader.cancel(error).catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  // What it says of its size and coding was true of the bytes that came.
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}
