import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { ArtifactStore } from "../src/artifacts/artifact-store.ts";

/** What every store of artifacts promises beside what its blobs do. A driver's test file calls this with a way to open an empty one. */
export function describeArtifactStore(name: string, open: () => Promise<ArtifactStore>): void {
  describe(`the ${name} store of artifacts`, () => {
    let store: ArtifactStore;
    beforeEach(async () => {
      store = await open();
    });
    const bytes = new TextEncoder().encode('{"spec":{},"data":[]}');
    const contentHash = createHash("sha256").update(bytes).digest("hex");

    it("keeps bytes under their sha256 and gives them back", async () => {
      const stored = await store.put({ bytes, type: "json" });
      expect(stored).toEqual({ contentHash, type: "json", bytes: bytes.length, url: expect.stringContaining(contentHash) });
      expect(Buffer.from((await store.get(contentHash, "json"))!)).toEqual(Buffer.from(bytes));
    });

    it("answers the same when the same is kept again", async () => {
      const first = await store.put({ bytes, type: "json" });
      expect(await store.put({ bytes, type: "json" })).toEqual(first);
    });

    it("keeps the same bytes apart by their type", async () => {
      await store.put({ bytes, type: "json" });
      expect(await store.get(contentHash, "png")).toBeNull();
    });

    it("says null to what it does not have, and to what is no hash", async () => {
      expect(await store.get("0".repeat(64), "png")).toBeNull();
      for (const name of ["", "../../etc/passwd", `${contentHash}/..`, contentHash.toUpperCase()])
        expect(await store.get(name, "json")).toBeNull();
    });
  });
}
