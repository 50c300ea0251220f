import { describe, expect, test } from "vitest";
import { createEvidenceStore } from "../create-evidence-store.ts";
import { createDatasetMemoryStore } from "./dataset-store.ts";

describe("the document of a dataset", () => {
  test("holds text and bytes larger than a piece exactly, characters across the cuts included", async () => {
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
