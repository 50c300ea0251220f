import type { CatalogTool } from "../tools/assign-names.ts";
import { codeModeSchemas } from "./code-mode-schemas.ts";
import { sessionTools } from "./session/session-tools.ts";

/** Our own tools in the form in which inputs are checked. One object a tool for good: what was compiled from its schema is kept by it. */
export const ownTools: ReadonlyMap<string, CatalogTool> = new Map(
  [...codeModeSchemas, ...sessionTools].map(({ name, description, inputSchema, annotations }) => [
    name,
    {
      name,
      fullName: name,
      bareName: name,
      tool: { name, server: "sluice", description, inputSchema, annotations, tags: [], call: neverCalled },
    },
  ]),
);

function neverCalled(): Promise<never> {
  return Promise.reject(new Error("A tool of our own is run, not called."));
}
