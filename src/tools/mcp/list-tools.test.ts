import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { listTools } from "./list-tools.ts";
import { clientInfo } from "./open-connection.ts";

it("stops when a server's pages go in circles", async () => {
  const odd: string[] = [];
  const pages = async (cursor: string | undefined) => ({
    tools: [{ name: `after_${cursor ?? "start"}` }],
    nextCursor: cursor === "a" ? "b" : "a",
  });
  const tools = await listTools(pages, (text) => odd.push(text));
  expect(tools.map(({ name }) => name)).toEqual(["after_start", "after_a", "after_b"]);
  expect(odd).toEqual(["the list of tools goes in circles at cursor a"]);
});

it("takes a tool for what it says that makes sense, and no more", async () => {
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

it("introduces us with the version of the package", () => {
  expect(clientInfo.version).toBe((JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version);
});
