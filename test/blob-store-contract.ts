import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { BlobStore } from "../src/blobs/blob-store.ts";
import { deleteBlobs } from "../src/blobs/delete-blobs.ts";

/** The contract of every blob store. The test file of each store calls this with a function that opens an empty store. */
export function describeBlobStore(name: string, open: () => BlobStore): void {
  describe(`the ${name} blob store`, () => {
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

    it("stores bytes under their sha256, and returns them completely or as a stream", async () => {
      expect(await store.put({ content })).toEqual({ name: hash, hash, bytes: 10 });
      expect(store.has(hash)).toBe(true);
      expect(Buffer.from((await store.get(hash))!)).toEqual(content);
      expect(Buffer.from(store.read(hash))).toEqual(content);
      expect(await streamed()).toBe("some bytes");
      expect(store.url(hash)).toContain(hash);
    });

    it("streams a range", async () => {
      await store.put({ content });
      expect(await streamed({ offset: 5, length: 3 })).toBe("byt");
      expect(await streamed({ offset: 5, length: 0 })).toBe("");
      expect(await streamed({ offset: 5, length: 100 })).toBe("bytes");
    });

    it("accepts content in chunks: empty, small and large", async () => {
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

    it("stores the same bytes once per extension", async () => {
      for (const extension of [".png", ".json", ".png"])
        expect(await store.put({ content, extension })).toEqual({ name: `${hash}${extension}`, hash, bytes: 10 });
      expect(names()).toEqual([`${hash}.json`, `${hash}.png`]);
      expect(await store.get(hash)).toBeNull();
    });

    it("trusts the hash of a caller, and detects content that does not match its name", async () => {
      expect(await store.put({ content, hash: other })).toEqual({ name: other, hash: other, bytes: 10 });
      expect(Buffer.from(store.read(other))).toEqual(content);
      await expect(store.get(other)).rejects.toMatchObject({
        code: "ARTIFACT_DAMAGED",
        message: `The artifact ${other} is damaged: its content does not match its hash.`,
      });
    });

    it("is not affected when the caller changes its buffer", async () => {
      const mine = Uint8Array.from(content);
      await store.put({ content: mine });
      mine.fill(0);
      (await store.get(hash))!.fill(0);
      expect(Buffer.from((await store.get(hash))!)).toEqual(content);
    });

    it("shows a blob only when it is complete, and never if its content fails", async () => {
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

    it("lists all blobs, or those with a prefix", async () => {
      const since = Date.now() - 60_000;
      await store.put({ content, extension: ".json" });
      await store.put({ content, hash: other });
      expect(names()).toEqual([other, `${hash}.json`].toSorted());
      expect([names(hash), names("00"), names(`${hash}.json`), names("drafts")]).toEqual([[`${hash}.json`], [other], [`${hash}.json`], []]);
      const [facts] = store.list(hash);
      expect(facts).toEqual({ name: `${hash}.json`, bytes: 10, modifiedAt: expect.any(Date), isDraft: false });
      expect(facts!.modifiedAt.getTime()).toBeGreaterThan(since);
    });

    it("returns null or throws EVIDENCE_MISSING for unknown and malformed names", async () => {
      await store.put({ content });
      for (const missing of [other, ...notNames]) {
        expect([store.has(missing), await store.get(missing)]).toEqual([false, null]);
        expect(() => store.read(missing)).toThrow(expect.objectContaining({ code: "EVIDENCE_MISSING" }));
        await expect(Array.fromAsync(store.stream(missing))).rejects.toMatchObject({ code: "EVIDENCE_MISSING" });
      }
    });

    it("deletes a blob with its companion files, and nothing for a malformed name", async () => {
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

    it("gives every reader complete content during concurrent writes", async () => {
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
