import { SluiceError } from "../../errors/sluice-error.ts";
import type { ServedTool, Surface } from "./contract.ts";
import { toInstructions } from "./instructions.ts";
import type { McpParts } from "./mcp-parts.ts";
import { builtChartApp, hasChartApp } from "./resources/chart-app.ts";
import { createSessionResources } from "./resources/create-session-resources.ts";
import type { SessionRegistry } from "./sessions/create-session-registry.ts";
import type { SessionAccess } from "./sessions/session-access.ts";
import { createCodeModeTools } from "./tools/code-mode-tools.ts";
import { createMcpDataTools } from "./tools/data-tools.ts";
import { findExposedTool, listExposedTools } from "./tools/exposed-tools.ts";
import { createInterpreterTools } from "./tools/interpreter-tools.ts";
import type { SluiceTool } from "./tools/sluice-tool.ts";
import { toServedTool } from "./tools/to-served-tool.ts";

/** Our own tools: the same objects for every client of a process. */
export function createOwnTools(parts: McpParts): ReadonlyMap<string, SluiceTool> {
  const tools = [
    ...createInterpreterTools({ hasChartApp: hasChartApp(parts.chartAppFile ?? builtChartApp) }),
    ...createMcpDataTools(),
    ...createCodeModeTools(parts),
  ];
  return new Map(tools.map((tool) => [tool.listing.name, tool]));
}

export interface SurfaceOptions {
  readonly registry: SessionRegistry;
  readonly access: SessionAccess;
  readonly tenant: string;
  readonly own: ReadonlyMap<string, SluiceTool>;
}

/** All of Sluice for one client. */
export async function createSessionSurface(parts: McpParts, { registry, access, tenant, own }: SurfaceOptions): Promise<Surface> {
  const serve = (tool: SluiceTool): ServedTool => toServedTool(tool, access);
  return {
    instructions: toInstructions(await promptOf(parts), access),
    tools: async (signal) => [...own.values(), ...(await listExposedTools(parts, signal))].map(serve),
    async tool(name, signal) {
      const tool = own.get(name) ?? (await findExposedTool(parts, name, signal));
      return tool === null ? null : serve(tool);
    },
    resources: createSessionResources(parts, { registry, access, tenant }),
  };
}

/** Without a snapshot nothing can be computed here. A client that connects is told why, rather than cut off. */
async function promptOf({ runtime }: McpParts): Promise<string> {
  return await runtime.librarianPrompt().catch((error: unknown) => {
    if (!(error instanceof SluiceError)) throw error;
    return `Python cannot be run here: ${error.message} ${error.hint ?? ""}`.trimEnd();
  });
}
