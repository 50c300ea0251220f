import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { ArtifactStore } from "../../../artifacts/stored-artifact.ts";
import { addressArtifacts } from "./address-artifacts.ts";

test("the last ten thousand artifacts are found by their address, and no more are remembered", async () => {
  const store: ArtifactStore = {
    put: async ({ bytes, type }) => ({ contentHash: createHash("sha256").update(bytes).digest("hex"), type, bytes: bytes.length, url: "" }),
    get: async () => Buffer.from("x"),
  };
  const artifacts = addressArtifacts(store);
  const publish = async (text: string): Promise<string> =>
    (await artifacts.store.put({ bytes: Buffer.from(text), type: "json" })).contentHash;
  const [first, second] = [await publish("first"), await publish("second")];
  await publish("first"); // again: it is the last one now
  for (let at = 0; at < 9_999; at += 1) await publish(String(at));
  expect([await artifacts.read(first), await artifacts.read(second)]).toEqual([{ type: "json", bytes: Buffer.from("x") }, null]);
});
