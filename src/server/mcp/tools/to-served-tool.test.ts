import { expect, it } from "vitest";
import type { ConnectionAccess } from "../connections/connection-access.ts";
import type { McpTool } from "./create-mcp-tools.ts";
import { type PublishedImage, toImageContent, toServedTool } from "./to-served-tool.ts";

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

function image(name: string, size: number): PublishedImage {
  const contentHash = name.repeat(64);
  const artifact = {
    schemaVersion: 1,
    kind: "image",
    url: `sluice://artifacts/${contentHash}`,
    alt: "A line that rises",
    contentHash,
    bytes: size,
    width: 2,
    height: 2,
  } as const;
  return { artifact, bytes: new Uint8Array(size) };
}

it("includes images while the result stays small and links to the others", () => {
  const [small, large, later] = toImageContent([image("a", 3), image("b", 800_000), image("c", 3)]);
  expect(small).toEqual({
    type: "image",
    data: "AAAA",
    mimeType: "image/png",
    _meta: { alt: "A line that rises", url: `sluice://artifacts/${"a".repeat(64)}` },
  });
  expect(large).toEqual({
    type: "resource_link",
    uri: `sluice://artifacts/${"b".repeat(64)}`,
    name: `${"b".repeat(64)}.png`,
    title: "A line that rises",
    description: "A line that rises (800000 bytes, too large to include here: read the resource)",
    mimeType: "image/png",
    size: 800_000,
  });
  expect(later?.type).toBe("image");
});
