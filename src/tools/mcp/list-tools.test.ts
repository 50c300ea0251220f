import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { listTools } from "./list-tools.ts";
import { clientInfo } from "./open-backend-connection.ts";

it("stops when a cursor repeats", async () => {
  const warnings: string[] = [];
  const pages = async (cursor: string | undefined) => ({
    tools: [{ name: `after_${cursor ?? "start"}` }],
    nextCursor: cursor === "a" ? "b" : "a",
  });
  const tools = await listTools(pages, (text) => warnings.push(text));
  expect(tools.map(({ name }) => name)).toEqual(["after_start", "after_a", "after_b"]);
  expect(warnings).toEqual(["the list of tools repeats the cursor a"]);
});

it("ignores invalid fields of a tool", async () => {
  const tool = {
    name: "t",
    title: 3,
    annotations: { title: "From the annotations", readOnlyHint: "yes", destructiveHint: false },
    outputSchema: "none",
    _meta: { tags: ["a", 1, "", "a"], fastmcp: { tags: "b" } },
  };
  expect(
    await listTools(
      async () => ({ tools: [tool], nextCursor: null }),
      () => {},
    ),
  ).toEqual([
    {
      name: "t",
      title: "From the annotations",
      description: "",
      inputSchema: { type: "object" },
      outputSchema: undefined,
      annotations: { destructiveHint: false },
      tags: ["a"],
    },
  ]);
});

it("skips tools whose schemas are too deep or too large, and keeps the others", async () => {
  const warnings: string[] = [];
  const deep = JSON.parse(`${'{"allOf":['.repeat(20_000)}{}${"]}".repeat(20_000)}`) as object;
  const tools = [
    { name: "deep", inputSchema: deep },
    { name: "large", description: "x".repeat(300_000) },
    { name: "plain", inputSchema: { type: "object", properties: { a: { type: "string" } } } },
    null,
  ];
  const listed = await listTools(
    async () => ({ tools }),
    (text) => warnings.push(text),
  );
  expect(listed.map(({ name }) => name)).toEqual(["plain"]);
  expect(warnings).toEqual([
    "skipped the tool deep: its description and schemas are nested more than 100 levels deep",
    "skipped the tool large: its description and schemas have 300033 characters; the limit is 262144",
    "skipped a tool that violates the protocol: null",
  ]);
});

it("sends the version of the package in the handshake", () => {
  expect(clientInfo.version).toBe((JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version);
});
