import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server, type CallToolResult } from "@modelcontextprotocol/server";
import { createEnvelope } from "../../errors/envelope.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { packageVersion } from "../../package-version.ts";
import type { CallContext, ServedTool, Surface } from "./contract.ts";
import { openProgress } from "./open-progress.ts";
import { toErrorResult } from "./results/to-call-result.ts";

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
    if (tool === null) return toErrorResult(await noSuchTool(surface, params.name, signal));
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
    return toErrorResult(createEnvelope({ code: "INTERNAL_ERROR", tool: tool.listing.name, summary, hints }));
  }
}

async function noSuchTool(surface: Surface, name: string, signal: AbortSignal): Promise<ReturnType<typeof createEnvelope>> {
  const names = (await surface.tools(signal)).map(({ listing }) => listing.name);
  const near = nearestName(name, names);
  return createEnvelope({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `There is no tool ${JSON.stringify(name)} here.`,
    hints: [...(near === null ? [] : [`Did you mean ${near}?`]), `There are: ${names.join(", ")}.`],
  });
}

function withHint({ message, hint }: SluiceError): string {
  return hint === undefined ? message : `${message} ${hint}`;
}
