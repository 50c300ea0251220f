import {
  type CallToolResult,
  type ProgressToken,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { createToolError } from "../../errors/tool-error.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { packageVersion } from "../../package-version.ts";
import type { CallContext, McpParts, Progress, ServedTool, Surface } from "./mcp-parts.ts";
import { toErrorResult } from "../../tools/tool.ts";
import { toCallResult, toServedTool } from "./tools/to-served-tool.ts";
import { createConnectionResources } from "./resources/create-connection-resources.ts";
import type { ConnectionRegistry } from "./connections/connection-registry.ts";
import type { ConnectionAccess } from "./connections/connection-access.ts";
import { findExposedTool, listExposedTools, type McpTool } from "./tools/create-mcp-tools.ts";

const serverInfo = { name: "sluice", title: "Sluice", version: packageVersion };

/** The protocol over a surface, for one connection or one request. Which version is spoken is the transport's affair. */
export function createMcpServer(surface: Surface): Server {
  const server = new Server(serverInfo, { capabilities: { tools: {}, resources: {} }, instructions: surface.instructions });

  server.setRequestHandler("tools/list", async (_request, { mcpReq }) => ({
    tools: (await surface.tools(mcpReq.signal)).map(({ listing }) => listing),
  }));

  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const { signal } = mcpReq;
    const tool = await surface.tool(params.name, signal);
    if (tool === null) return toCallResult(toErrorResult(await noSuchTool(surface, params.name, signal)));
    const progress = openProgress({ token: mcpReq._meta?.progressToken, notify: mcpReq.notify });
    try {
      return await callTool(tool, params.arguments ?? {}, { signal, progress });
    } finally {
      progress.end();
    }
  });

  server.setRequestHandler("resources/list", async ({ params }) => {
    const { resources, nextCursor } = await surface.resources.list(params?.cursor);
    return { resources: [...resources], ...(nextCursor === undefined ? {} : { nextCursor }) };
  });

  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [...surface.resources.templates] }));

  server.setRequestHandler("resources/read", async ({ params: { uri } }, { mcpReq }) => {
    const found = await surface.resources.read(uri, mcpReq.signal).catch((error: unknown) => {
      if (error instanceof SluiceError) throw new ProtocolError(ProtocolErrorCode.InternalError, withHint(error), { uri });
      throw error;
    });
    if (found === null) throw new ResourceNotFoundError(uri);
    return found;
  });

  return server;
}

/** A fault of ours is an envelope too. Only a caller that gave up gets nothing. */
async function callTool(tool: ServedTool, args: Readonly<Record<string, unknown>>, context: CallContext): Promise<CallToolResult> {
  try {
    return await tool.call(args, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof ProtocolError) throw error; // about the protocol, not about the call
    const summary = error instanceof Error ? error.message : String(error);
    const hints = error instanceof SluiceError && error.hint !== undefined ? [error.hint] : [];
    return toCallResult(toErrorResult(createToolError({ code: "INTERNAL_ERROR", tool: tool.listing.name, summary, hints })));
  }
}

async function noSuchTool(surface: Surface, name: string, signal: AbortSignal): Promise<ReturnType<typeof createToolError>> {
  const names = (await surface.tools(signal)).map(({ listing }) => listing.name);
  const near = nearestName(name, names);
  return createToolError({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `There is no tool ${JSON.stringify(name)} here.`,
    hints: [...(near === null ? [] : [`Did you mean ${near}?`]), `There are: ${names.join(", ")}.`],
  });
}

function withHint({ message, hint }: SluiceError): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

export interface ProgressOptions {
  /** Undefined when the client did not ask: then nothing is sent. */
  readonly token: ProgressToken | undefined;
  readonly notify: ServerContext["mcpReq"]["notify"];
}

export interface OpenProgress extends Progress {
  end(): void;
}

const BEAT_MS = 1000;
const SHORTEST_PAUSE_MS = 200;
const MAX_MESSAGE_CHARACTERS = 200;

/** A beat each second with the seconds gone by, so that a client can tell a long cell from a dead server, and the last word of who runs. */
function openProgress({ token, notify }: ProgressOptions): OpenProgress {
  if (token === undefined) return { say: () => {}, end: () => {} };
  const startedAt = performance.now();
  let sentAt = -Infinity;
  let word = "started";
  let timer: NodeJS.Timeout | null = null;

  function send(): void {
    sentAt = performance.now();
    const progress = Math.round(sentAt - startedAt) / 1000;
    notify({ method: "notifications/progress", params: { progressToken: token!, progress, message: word } }).catch(() => {}); // the client is gone
    word = `running for ${Math.round(progress + BEAT_MS / 1000)} s`;
    schedule(BEAT_MS);
  }

  function schedule(ms: number): void {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(send, ms).unref();
  }

  send();
  return {
    say(message) {
      const line = message.trimEnd().split("\n").at(-1)?.trim() ?? "";
      if (line === "" || timer === null) return;
      word = line.slice(0, MAX_MESSAGE_CHARACTERS);
      schedule(Math.max(0, sentAt + SHORTEST_PAUSE_MS - performance.now()));
    },
    end() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}

export interface SurfaceOptions {
  readonly registry: ConnectionRegistry;
  readonly access: ConnectionAccess;
  readonly tenant: string;
  readonly own: ReadonlyMap<string, McpTool>;
}

/** All of Sluice for one client. */
export async function createConnectionSurface(parts: McpParts, { registry, access, tenant, own }: SurfaceOptions): Promise<Surface> {
  const serve = (tool: McpTool): ServedTool => toServedTool(tool, access);
  return {
    instructions: toInstructions(await promptOf(parts), access),
    tools: async (signal) => [...own.values(), ...(await listExposedTools(parts, signal))].map(serve),
    async tool(name, signal) {
      const tool = own.get(name) ?? (await findExposedTool(parts, name, signal));
      return tool === null ? null : serve(tool);
    },
    resources: createConnectionResources(parts, { registry, access, tenant, own }),
  };
}

/** Without a snapshot nothing can be computed here. A client that connects is told why, rather than cut off. */
async function promptOf({ runtime }: McpParts): Promise<string> {
  return await runtime.librarianPrompt().catch((error: unknown) => {
    if (!(error instanceof SluiceError)) throw error;
    return `Python cannot be run here: ${error.message} ${error.hint ?? ""}`.trimEnd();
  });
}

/** What a client's model is told beside the tools: the librarian's rules, and how data gets here. */
function toInstructions(librarianPrompt: string, { isByHandle }: { isByHandle: boolean }): string {
  const session = isByHandle
    ? "Pass the session of a result with the next call: without it a call has a sandbox of its own, and does not know your aliases."
    : "Aliases and variables live on; a sandbox that is not used for a while is freed, and the next answer says so.";
  return `${librarianPrompt}

Here: list_data shows what data there is, store_data keeps JSON or CSV under a name, execute fetches with backend tools. ${session}
A failure is an error envelope: do what its hints say.`;
}
