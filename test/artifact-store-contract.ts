import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { ArtifactStore } from "../src/artifacts/contract.ts";

/** What every store of artifacts promises. A driver's test file calls this with a way to open an empty one. */
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

    it("does not change when the caller's bytes do", async () => {
      const mine = Uint8Array.from(bytes);
      await store.put({ bytes: mine, type: "json" });
      mine.fill(0);
      const given = (await store.get(contentHash, "json"))!;
      given.fill(0);
      expect(Buffer.from((await store.get(contentHash, "json"))!)).toEqual(Buffer.from(bytes));
    });

    it("takes an empty artifact and a large one", async () => {
      for (const size of [0, 5_000_000]) {
        const { contentHash: hash } = await store.put({ bytes: new Uint8Array(size).fill(7), type: "png" });
        expect((await store.get(hash, "png"))?.length).toBe(size);
      }
    });

    it("gives whole bytes to every reader while many write the same", async () => {
      const large = new Uint8Array(300_000).fill(9);
      const hash = createHash("sha256").update(large).digest("hex");
      const read = async (): Promise<number | undefined> => (await store.get(hash, "png"))?.length;
      const seen = await Promise.all(
        Array.from({ length: 40 }, async (_, index) =>
          index % 2 === 0 ? (await store.put({ bytes: large, type: "png" })).bytes : await read(),
        ),
      );
      expect(seen.filter((size) => size !== undefined && size !== large.length)).toEqual([]);
      expect(await read()).toBe(large.length);
    });
  });
}
