import { describe, expect, test } from "vitest";
import { createEvidenceStore } from "./create-evidence-store.ts";
import { evidenceRecordSchema, toEvidenceRecord } from "./evidence-record.ts";
import type { EvidenceStore } from "./evidence-store.ts";
import type { RestoredItem } from "./kept-item.ts";

const at = (): Date => new Date("2026-01-02T03:04:05Z");
const image = { type: "image", data: Buffer.from("png").toString("base64"), mimeType: "image/png" };

function filled(): EvidenceStore {
  const store = createEvidenceStore({ conversationId: "c1", tenant: "t1", now: at });
  const rows = '[{"id":12345678901234567890,"price":1.10},{"id":2,"price":2.20}]';
  store.add({ tool: "shop__get_price", arguments: { symbol: "A" }, output: { content: [{ type: "text", text: rows }, image] }, as: "mcp" });
  store.addResult({ json: "[1,2.50]", from: "code_interpreter", arguments: { operation: "aggregate" } });
  store.addData({ name: "prices", format: "csv", bytes: Buffer.from("day,price\n1,2\n2,3\n"), mimeType: "text/csv" });
  store.addData({ name: "words", format: "text", bytes: Buffer.from("two\nlines") });
  return store;
}

/** What a file store would keep: records as JSON text, bytes by their hash. */
function reopen(store: EvidenceStore): { store: EvidenceStore; reads: string[] } {
  const reads: string[] = [];
  const restored = store.aliases().map((alias): RestoredItem => {
    const item = store.get(alias)!;
    const bytes = Buffer.from(item.read());
    const record = evidenceRecordSchema.parse(JSON.parse(JSON.stringify(toEvidenceRecord(item))));
    return { record, read: () => (reads.push(alias), bytes) };
  });
  return { store: createEvidenceStore({ conversationId: "c1", tenant: "t1", restored, now: at }), reads };
}

describe("restored evidence", () => {
  test("is byte for byte the same", () => {
    const before = filled();
    const { store } = reopen(before);
    expect(store.aliases()).toEqual(["get_price_1", "get_price_1_image", "result_1", "prices", "words"]);
    expect(store.totalBytes).toBe(before.totalBytes);
    for (const alias of before.aliases()) {
      const [old, now] = [before.get(alias)!, store.get(alias)!];
      expect([now.tenant, toEvidenceRecord(now)]).toEqual([old.tenant, toEvidenceRecord(old)]);
      expect(Buffer.from(now.read())).toEqual(Buffer.from(old.read()));
    }
  });

  test("has the same previews", () => {
    const before = filled();
    const { store } = reopen(before);
    for (const alias of before.aliases()) expect(store.preview(alias)).toEqual(before.preview(alias));
    expect(store.previewStep(store.aliases(), { maxBytes: 900 })).toEqual(before.previewStep(before.aliases(), { maxBytes: 900 }));
  });

  test("is not read before it is needed", () => {
    const { store, reads } = reopen(filled());
    expect(store.get("get_price_1")!.shape.rows).toBe(2);
    expect(store.get("get_price_1")!.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(reads).toEqual([]);
    store.preview("prices");
    expect(new Set(reads)).toEqual(new Set(["prices"]));
  });

  test("keeps its aliases, and new outputs continue the numbers", () => {
    const { store } = reopen(filled());
    expect(store.add({ tool: "shop__get_price", output: [1] }).alias).toBe("get_price_2");
    expect(store.addResult({ json: "3", from: "code_interpreter" }).alias).toBe("result_2");
  });

  test("counts towards the budget", () => {
    const before = filled();
    const restored = before.aliases().map((alias) => ({ record: toEvidenceRecord(before.get(alias)!), read: before.get(alias)!.read }));
    const store = createEvidenceStore({ restored, budget: { totalBytes: before.totalBytes + 1 } });
    expect(() => store.addResult({ json: "123", from: "code_interpreter" })).toThrow("are allowed");
  });

  test("is refused if a newer version wrote it", () => {
    const record = toEvidenceRecord(filled().get("prices")!);
    expect(evidenceRecordSchema.safeParse({ ...record, schemaVersion: 2 }).success).toBe(false);
  });
});
