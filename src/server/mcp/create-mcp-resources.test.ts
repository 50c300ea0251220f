import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import type { ArtifactStore } from "../../artifacts/artifact-store.ts";
import { addressArtifacts, parseDataUri, toDataUri } from "./create-mcp-resources.ts";

it("parses every data URI that it writes", () => {
  for (const address of [
    { handle: null, alias: "rows_1", offset: 0 },
    { handle: null, alias: "größe", offset: 1200 },
    { handle: "Ab-_9", alias: "rows_1", offset: 50 },
  ])
    expect(parseDataUri(toDataUri(address))).toEqual(address);
  expect(toDataUri({ handle: "Ab-_9", alias: "rows_1", offset: 50 })).toBe("sluice://sessions/Ab-_9/data/rows_1?offset=50");
});

it("rejects every other URI", () => {
  for (const uri of [
    "sluice://data/",
    "sluice://data/a/b",
    "sluice://data/a?offset=-1",
    "sluice://data/a?offset=1&x=2",
    "sluice://sessions//data/a",
    "sluice://data/%E0%A4%A",
    "file:///data/a",
  ])
    expect(parseDataUri(uri)).toBeNull();
});

it("finds the last ten thousand artifacts by URI and forgets older ones", async () => {
  const store: ArtifactStore = {
    put: async ({ bytes, type }) => ({ contentHash: createHash("sha256").update(bytes).digest("hex"), type, bytes: bytes.length, url: "" }),
    get: async () => Buffer.from("x"),
  };
  const artifacts = addressArtifacts(store);
  const publish = async (text: string): Promise<string> =>
    (await artifacts.storeOf("ann").put({ bytes: Buffer.from(text), type: "json" })).contentHash;
  const [first, second] = [await publish("first"), await publish("second")];
  await publish("first"); // publishing it again makes it the newest
  for (let index = 0; index < 9_999; index += 1) await publish(String(index));
  const found = await Promise.all([artifacts.read(first, "ann"), artifacts.read(second, "ann"), artifacts.read(first, "bob")]);
  expect(found).toEqual([{ type: "json", bytes: Buffer.from("x") }, null, null]);
});
