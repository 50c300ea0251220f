import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { BlobStore } from "../src/blobs/blob-store.ts";
import { deleteBlobs } from "../src/blobs/delete-blobs.ts";

/** What every store of blobs promises. A store's test file calls this with a way to open an empty one. */
export function describeBlobStore(name: string, open: () => BlobStore): void {
  describe(`the ${name} store of blobs`, () => {
    let store: BlobStore;
    beforeEach(() => (store = open()));
    const content = Buffer.from("some bytes");
    const hash = createHash("sha256").update(content).digest("hex");
    const other = "0".repeat(64);
    const notNames = ["", "../outside.txt", "/etc/passwd", `${hash}/..`, hash.toUpperCase()];
    const names = (prefix?: string): string[] =>
      store
        .list(prefix)
        .map((blob) => blob.name)
        .toSorted();
    const streamed = async (range?: { offset: number; length: number }): Promise<string> =>
      Buffer.concat(await Array.fromAsync(store.stream(hash, range))).toString();

    it("keeps bytes under their sha256, and gives them back whole, at once and in pieces", async () => {
      expect(await store.put({ content })).toEqual({ name: hash, hash, bytes: 10 });
      expect(store.has(hash)).toBe(true);
      expect(Buffer.from((await store.get(hash))!)).toEqual(content);
      expect(Buffer.from(store.read(hash))).toEqual(content);
      expect(await streamed()).toBe("some bytes");
      expect(store.url(hash)).toContain(hash);
    });

    it("streams a part", async () => {
      await store.put({ content });
      expect(await streamed({ offset: 5, length: 3 })).toBe("byt");
      expect(await streamed({ offset: 5, length: 0 })).toBe("");
      expect(await streamed({ offset: 5, length: 100 })).toBe("bytes");
    });

    it("takes content that comes in pieces, none and much", async () => {
      async function* pieces(): AsyncGenerator<Uint8Array> {
        yield content.subarray(0, 4);
        yield content.subarray(4);
      }
      expect(await store.put({ content: pieces() })).toEqual({ name: hash, hash, bytes: 10 });
      for (const size of [0, 5_000_000]) {
        const { name: kept, bytes } = await store.put({ content: new Uint8Array(size).fill(7) });
        expect([bytes, store.read(kept).length]).toEqual([size, size]);
      }
    });

    it("keeps the same bytes once, and apart by their extension", async () => {
      for (const extension of [".png", ".json", ".png"])
        expect(await store.put({ content, extension })).toEqual({ name: `${hash}${extension}`, hash, bytes: 10 });
      expect(names()).toEqual([`${hash}.json`, `${hash}.png`]);
      expect(await store.get(hash)).toBeNull();
    });

    it("takes a caller's word for a hash, and finds bytes that are not what their name says", async () => {
      expect(await store.put({ content, hash: other })).toEqual({ name: other, hash: other, bytes: 10 });
      expect(Buffer.from(store.read(other))).toEqual(content);
      await expect(store.get(other)).rejects.toMatchObject({
        code: "ARTIFACT_DAMAGED",
        message: `The artifact ${other} is damaged: its content does not match its hash.`,
      });
    });

    it("does not change when the caller's bytes do", async () => {
      const mine = Uint8Array.from(content);
      await store.put({ content: mine });
      mine.fill(0);
      (await store.get(hash))!.fill(0);
      expect(Buffer.from((await store.get(hash))!)).toEqual(content);
    });

    it("has nothing under a name before all of it has come, and nothing at all when the content fails", async () => {
      const seen: unknown[] = [];
      async function* pieces(): AsyncGenerator<Uint8Array> {
        yield content;
        seen.push(
          store.has(hash),
          store.list().filter(({ isDraft }) => !isDraft),
        );
        throw new Error("the connection broke");
      }
      await expect(store.put({ content: pieces() })).rejects.toThrow("the connection broke");
      expect([seen, store.list()]).toEqual([[false, []], []]);
    });

    it("lists what it has, all or by how names begin", async () => {
      const since = Date.now() - 60_000;
      await store.put({ content, extension: ".json" });
      await store.put({ content, hash: other });
      expect(names()).toEqual([other, `${hash}.json`].toSorted());
      expect([names(hash), names("00"), names(`${hash}.json`), names("drafts")]).toEqual([[`${hash}.json`], [other], [`${hash}.json`], []]);
      const [facts] = store.list(hash);
      expect(facts).toEqual({ name: `${hash}.json`, bytes: 10, modifiedAt: expect.any(Date), isDraft: false });
      expect(facts!.modifiedAt.getTime()).toBeGreaterThan(since);
    });

    it("says null or EVIDENCE_MISSING to what it does not have, and to what is no name", async () => {
      await store.put({ content });
      for (const missing of [other, ...notNames]) {
        expect([store.has(missing), await store.get(missing)]).toEqual([false, null]);
        expect(() => store.read(missing)).toThrow(expect.objectContaining({ code: "EVIDENCE_MISSING" }));
        await expect(Array.fromAsync(store.stream(missing))).rejects.toMatchObject({ code: "EVIDENCE_MISSING" });
      }
    });

    it("deletes a blob with what lies beside it, and nothing for what is no name", async () => {
      for (const extension of [".json", ".index.json"]) await store.put({ content, extension });
      await store.put({ content, hash: other });
      deleteBlobs(store, [...notNames, hash.slice(0, 2), "drafts"]);
      expect(names()).toHaveLength(3);
      deleteBlobs(store, [hash, hash]);
      expect(names()).toEqual([other]);
      store.delete(other);
      store.delete(other);
      expect(names()).toEqual([]);
    });

    it("gives whole bytes to every reader while many write the same", async () => {
      const large = Buffer.alloc(300_000, 9);
      const name = createHash("sha256").update(large).digest("hex");
      const seen = await Promise.all(
        Array.from({ length: 40 }, async (_, index) =>
          index % 2 === 0 ? (await store.put({ content: large })).bytes : ((await store.get(name))?.length ?? large.length),
        ),
      );
      expect(new Set(seen)).toEqual(new Set([large.length]));
      expect(store.list()).toHaveLength(1);
    });
  });
}
