import { expect, it } from "vitest";
import type { ConnectionAccess } from "../connections/connection-access.ts";
import type { McpTool } from "./create-mcp-tools.ts";
import { toServedTool } from "./to-served-tool.ts";

const access = { isByHandle: true, own: null } as ConnectionAccess;

function propertiesOf(properties: object): object | undefined {
  const tool: McpTool = {
    ...{ name: "t", title: "T", description: "", annotations: {}, inputSchema: { type: "object", properties } },
    run: () => Promise.reject(new Error("not called")),
  };
  return toServedTool(tool, access).listing.inputSchema.properties;
}

it("leaves a tool's own session argument alone and takes the handle as sluice_session", () => {
  expect(propertiesOf({ text: {} })).toEqual({ text: {}, session: { type: "string" } });
  expect(propertiesOf({ session: { type: "integer" } })).toEqual({ session: { type: "integer" }, sluice_session: { type: "string" } });
});
