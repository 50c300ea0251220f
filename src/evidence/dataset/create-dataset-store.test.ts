import { createHash } from "node:crypto";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { BlobStore } from "../../blobs/blob-store.ts";
import { createMemoryBlobs } from "../../blobs/create-memory-blobs.ts";
import type { EvidenceItem } from "../evidence-store.ts";
import { createEvidenceStore } from "../create-evidence-store.ts";
import { createDatasetMemoryStore, createDatasetStore, readLastUses } from "./create-dataset-store.ts";

describe("the document of a dataset", () => {
  test("contains text and bytes larger than a chunk exactly, including characters across chunk borders", async () => {
    const evidence = createEvidenceStore();
    const text = `${"x".repeat((1 << 20) - 1)}\u{1F600}"\n${"é".repeat(1 << 20)}`;
    const bytes = Buffer.from(Array.from({ length: (1 << 21) + 5 }, (_, at) => at % 251));
    evidence.addData({ name: "words", format: "text", bytes: Buffer.from(text) });
    evidence.addData({ name: "raw", format: "parquet", bytes });
    const items = evidence.aliases().map((alias) => evidence.get(alias)!);
    const store = createDatasetMemoryStore();
    const { hash } = await store.put({ facts: {}, items, artifacts: [] });
    const reader = (await store.open(hash))!;
    const document = JSON.parse(Buffer.concat(await Array.fromAsync(reader.stream())).toString()) as {
      outputs: { alias: string; value: string; encoding: string; sha256: string }[];
    };
    expect(document.outputs.map(({ alias, encoding, sha256 }) => [alias, encoding, sha256])).toEqual([
      ["words", "text", items[0]!.sha256],
      ["raw", "base64", items[1]!.sha256],
    ]);
    expect(document.outputs[0]!.value === text).toBe(true);
    expect(Buffer.from(document.outputs[1]!.value, "base64").equals(bytes)).toBe(true);
    expect(Buffer.from((await reader.readTable("raw"))!).equals(bytes)).toBe(true);
  });
});

describe("storing a dataset", () => {
  function manyItems(): EvidenceItem[] {
    const evidence = createEvidenceStore();
    for (let index = 0; index < 40; index++) evidence.add({ tool: "get_row", output: { index } });
    return evidence.aliases().map((alias) => evidence.get(alias)!);
  }

  /** Records what happens, and how many writes run at once. */
  function watch(blobs: BlobStore, failing?: string) {
    const seen = { writing: 0, mostAtOnce: 0, readBack: 0, writingAtManifest: [] as number[] };
    const watched: BlobStore = {
      ...blobs,
      async put(blob) {
        if (blob.extension === ".json") seen.writingAtManifest.push(seen.writing);
        seen.writing += 1;
        seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.writing);
        try {
          if (blob.hash === failing) throw new Error("The disk is full.");
          await yieldToEventLoop();
          return await blobs.put(blob);
        } finally {
          seen.writing -= 1;
        }
      },
      stream(name, range) {
        seen.readBack += 1;
        return blobs.stream(name, range);
      },
    };
    return { seen, store: createDatasetStore({ manifests: watched, bodies: watched }) };
  }

  test("writes a few outputs at once, reads none of them back, and writes the manifest last", async () => {
    const items = manyItems();
    const { seen, store } = watch(createMemoryBlobs("datasets"));
    const kept = await store.put({ facts: {}, items, artifacts: [] });
    expect(seen).toEqual({ writing: 0, mostAtOnce: expect.any(Number), readBack: 0, writingAtManifest: [0] });
    expect([seen.mostAtOnce > 1, seen.mostAtOnce < items.length]).toEqual([true, true]);
    const document = Buffer.concat(await Array.fromAsync((await store.open(kept.hash))!.stream()));
    expect([document.length, createHash("sha256").update(document).digest("hex")]).toEqual([kept.bytes, kept.hash]);
  });

  test("that fails writes no manifest and leaves no write running", async () => {
    const items = manyItems();
    const { seen, store } = watch(createMemoryBlobs("datasets"), items[3]!.sha256);
    await expect(store.put({ facts: {}, items, artifacts: [] })).rejects.toThrow("The disk is full.");
    expect([seen.writing, seen.writingAtManifest]).toEqual([0, []]);
  });
});

describe("readLastUses", () => {
  test("ignores a manifest that is deleted meanwhile", async () => {
    const blobs = createMemoryBlobs("datasets");
    const store = createDatasetStore({ manifests: blobs, bodies: blobs });
    const evidence = createEvidenceStore();
    const items = ["one", "two"].map((word) => evidence.add({ tool: "get_words", output: word }));
    const [gone] = [
      await store.put({ facts: {}, items, artifacts: [] }),
      await store.put({ facts: {}, items: [items[1]!], artifacts: [] }),
    ];
    const listed = blobs.list();
    blobs.delete(`${gone.hash}.json`);
    const usedAt = await readLastUses({ ...blobs, list: () => listed });
    expect([...usedAt.keys()]).toEqual([items[1]!.sha256]);
  });
});
