import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { ArtifactStore } from "../src/artifacts/artifact-store.ts";

/** The contract of every artifact store, in addition to the contract of its blobs. The test file of each store calls this with a function that opens an empty store. */
export function describeArtifactStore(name: string, open: () => Promise<ArtifactStore>): void {
  describe(`the ${name} artifact store`, () => {
    let store: ArtifactStore;
    beforeEach(async () => {
      store = await open();
    });
    const bytes = new TextEncoder().encode('{"spec":{},"data":[]}');
    const contentHash = createHash("sha256").update(bytes).digest("hex");

    it("stores bytes under their sha256 and returns them", async () => {
      const stored = await store.put({ bytes, type: "json" });
      expect(stored).toEqual({ contentHash, type: "json", bytes: bytes.length, url: expect.stringContaining(contentHash) });
      expect(Buffer.from((await store.get(contentHash, "json"))!)).toEqual(Buffer.from(bytes));
    });

    it("gives the same answer when the same content is stored again", async () => {
      const first = await store.put({ bytes, type: "json" });
      expect(await store.put({ bytes, type: "json" })).toEqual(first);
    });

    it("stores the same bytes separately for each type", async () => {
      await store.put({ bytes, type: "json" });
      expect(await store.get(contentHash, "png")).toBeNull();
    });

    it("returns null for unknown and malformed hashes", async () => {
      expect(await store.get("0".repeat(64), "png")).toBeNull();
      for (const name of ["", "../../etc/passwd", `${contentHash}/..`, contentHash.toUpperCase()])
        expect(await store.get(name, "json")).toBeNull();
    });
  });
}
