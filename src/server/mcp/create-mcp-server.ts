import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequiredResult,
  type ProgressToken,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { createToolError, type ToolError } from "../../errors/tool-error.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { packageVersion } from "../../package-version.ts";
import { offersForms, readApproval, toApprovalQuestion } from "./ask-client.ts";
import type { McpCaller } from "./mcp-parts.ts";
import { ANSWER_MS, type PausedCalls } from "./paused-calls.ts";
import type { McpCallContext, ProgressReporter, ServedTool, Surface } from "./surface.ts";
import { toErrorResult } from "../../tools/tool.ts";
import { toCallResult } from "./tools/to-served-tool.ts";

const serverInfo = { name: "sluice", title: "Sluice", version: packageVersion };

interface McpServerOptions {
  readonly surface: Surface;
  /** The sender of the request that is being handled. */
  caller(): McpCaller;
  /** Of all connections and requests of the process. */
  readonly pausedCalls: PausedCalls;
}

/** Serves a surface for one connection or one stateless request. The transport decides the version of the protocol. */
export function createMcpServer({ surface, caller, pausedCalls }: McpServerOptions): Server {
  const server = new Server(serverInfo, { capabilities: { tools: {}, resources: {} }, instructions: surface.instructions });

  server.setRequestHandler("tools/list", async (_request, { mcpReq }) => ({
    tools: (await surface.tools(mcpReq.signal)).map(({ listing }) => listing),
  }));

  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const { signal } = mcpReq;
    const progress = openProgress(mcpReq._meta?.progressToken, mcpReq.notify);
    try {
      const token = mcpReq.requestState();
      if (typeof token === "string") {
        const resumed = await pausedCalls.resume(token, mcpReq.inputResponses ?? {}, { signal, progress }, caller());
        return resumed ?? toCallResult(toErrorResult(notWaiting(params.name)));
      }
      const tool = await surface.tool(params.name, signal);
      if (tool === null) return toCallResult(toErrorResult(await toolNotFound(surface, params.name, signal)));
      return await startCall(tool, params.arguments ?? {}, { mcpReq, progress });
    } finally {
      progress.end();
    }
  });

  /** Clients of protocol 2026 are asked through results, clients of 2025 by a request of their own. */
  async function startCall(
    tool: ServedTool,
    args: Readonly<Record<string, unknown>>,
    { mcpReq, progress }: { mcpReq: ServerContext["mcpReq"]; progress: ProgressReporter },
  ): Promise<CallToolResult | InputRequiredResult> {
    const { signal } = mcpReq;
    const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope;
    if (!offersForms(envelope === undefined ? server.getClientCapabilities() : envelope[CLIENT_CAPABILITIES_META_KEY]))
      return await callTool(tool, args, { signal, progress });
    if (envelope !== undefined) return await pausedCalls.start((call) => callTool(tool, args, call), { signal, progress }, caller());
    const approve: McpCallContext["approve"] = async (asked, given, approvalSignal = signal) => {
      const request = { method: "elicitation/create" as const, params: { ...toApprovalQuestion(asked, given) } };
      try {
        return readApproval(await mcpReq.send(request, { signal: approvalSignal, timeout: ANSWER_MS }));
      } catch (error) {
        approvalSignal.throwIfAborted();
        return { approved: false, because: `the client could not ask: ${(error as Error).message}.`, wasNotAsked: true };
      }
    };
    return await callTool(tool, args, { signal, progress, approve });
  }

  server.setRequestHandler("resources/list", async ({ params }) => {
    const { resources, nextCursor } = await surface.resources.list(params?.cursor);
    return { resources: [...resources], nextCursor };
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

/** Internal errors become tool errors too. Rejects only when the caller aborted, or with an error of the protocol. */
async function callTool(tool: ServedTool, args: Readonly<Record<string, unknown>>, context: McpCallContext): Promise<CallToolResult> {
  try {
    return await tool.call(args, context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof ProtocolError) throw error;
    const summary = error instanceof Error ? error.message : String(error);
    const hints = error instanceof SluiceError && error.hint !== undefined ? [error.hint] : [];
    return toCallResult(toErrorResult(createToolError({ code: "INTERNAL_ERROR", tool: tool.listing.name, summary, hints })));
  }
}

async function toolNotFound(surface: Surface, name: string, signal: AbortSignal): Promise<ToolError> {
  const names = (await surface.tools(signal)).map(({ listing }) => listing.name);
  const near = nearestName(name, names);
  return createToolError({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `There is no tool ${JSON.stringify(name)}.`,
    hints: [...(near === null ? [] : [`Did you mean ${near}?`]), `Available tools: ${names.join(", ")}.`],
  });
}

function notWaiting(tool: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool,
    summary: "No call waits for this approval: it has ended, or the answer came too late.",
    hints: ["Call the tool again without requestState."],
  });
}

function withHint({ message, hint }: SluiceError): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

const INTERVAL_MS = 1000;
const MIN_INTERVAL_MS = 200;
const MAX_MESSAGE_CHARACTERS = 200;

/**
 * Notifies the client every second, so that it can tell a long call from a dead server. Sends the latest message, else the time so far; nothing to a client
 * that did not ask for progress.
 */
function openProgress(
  token: ProgressToken | undefined,
  notify: ServerContext["mcpReq"]["notify"],
): ProgressReporter & { readonly end: () => void } {
  if (token === undefined) return { report: () => {}, end: () => {} };
  const startedAt = performance.now();
  let sentAt = -Infinity;
  let nextMessage = "started";
  let timer: NodeJS.Timeout | null = null;

  function send(): void {
    sentAt = performance.now();
    const progress = Math.round(sentAt - startedAt) / 1000;
    const params = { progressToken: token!, progress, message: nextMessage };
    notify({ method: "notifications/progress", params }).catch(() => {}); // the client disconnected
    nextMessage = `running for ${Math.round(progress + INTERVAL_MS / 1000)} s`;
    schedule(INTERVAL_MS);
  }

  function schedule(ms: number): void {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(send, ms).unref();
  }

  send();
  return {
    report(message) {
      const line = message.trimEnd().split("\n").at(-1)?.trim() ?? "";
      if (line === "" || timer === null) return;
      nextMessage = line.slice(0, MAX_MESSAGE_CHARACTERS);
      schedule(Math.max(0, sentAt + MIN_INTERVAL_MS - performance.now()));
    },
    end() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}
