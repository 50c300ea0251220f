import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { OutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { CallContext, CallContexts } from "./call-context.ts";
import { filterAnswer } from "./filter-answer.ts";

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
      if (context === undefined) return fetch(target, init);
      const response = await fetch(target, { ...init, headers: withCallHeaders(init?.headers, context) });
      if (response.ok) return filterAnswer(response, { maxMessageBytes, context, reader });
      context.status = response.status;
      context.retryAfter = response.headers.get("retry-after");
      return response;
    },
  });
}

/** Headers of the call win over those of the entry, `Authorization` too; those that make up the protocol stay as they are. */
function withCallHeaders(base: ConstructorParameters<typeof Headers>[0], context: CallContext): Headers {
  const headers = new Headers(base);
  for (const [name, value] of Object.entries(context.headers)) if (!protocolHeaders.test(name)) headers.set(name, value);
  return headers;
}

const protocolHeaders = /^(?:accept|connection|content-length|content-type|host|last-event-id|transfer-encoding|mcp-.*)$/i;
