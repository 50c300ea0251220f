import { SluiceError } from "../../errors/sluice-error.ts";
import { pythonUnavailable, toMcpInstructions } from "../../prompts/mcp-server.ts";
import type { ConnectionAccess } from "./connections/connection-access.ts";
import type { ConnectionRegistry } from "./connections/connection-registry.ts";
import { createMcpResources } from "./create-mcp-resources.ts";
import type { McpParts } from "./mcp-parts.ts";
import type { ServedTool, Surface } from "./surface.ts";
import { findExposedTool, listExposedTools, type McpTool } from "./tools/create-mcp-tools.ts";
import { toServedTool } from "./tools/to-served-tool.ts";

export interface SurfaceOptions {
  readonly registry: ConnectionRegistry;
  readonly access: ConnectionAccess;
  readonly tenant: string;
  readonly ownTools: ReadonlyMap<string, McpTool>;
}

/** What Sluice offers one client: its own tools, those of exposed backend servers, and the resources. */
export async function createSurface(parts: McpParts, { registry, access, tenant, ownTools }: SurfaceOptions): Promise<Surface> {
  const serve = (tool: McpTool): ServedTool => toServedTool(tool, access);
  return {
    instructions: toMcpInstructions(await readLibrarianPrompt(parts), access),
    tools: async (signal) => [...ownTools.values(), ...(await listExposedTools(parts, signal))].map(serve),
    async tool(name, signal) {
      const tool = ownTools.get(name) ?? (await findExposedTool(parts, name, signal));
      return tool === null ? null : serve(tool);
    },
    resources: createMcpResources(parts, { registry, access, tenant }),
  };
}

/** Without a snapshot there is no Python. The instructions then say why, so that a client can still connect. */
async function readLibrarianPrompt({ runtime }: McpParts): Promise<string> {
  return await runtime.librarianPrompt().catch((error: unknown) => {
    if (!(error instanceof SluiceError)) throw error;
    return pythonUnavailable(error.message, error.hint);
  });
}
