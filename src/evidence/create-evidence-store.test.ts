import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EvidenceItem } from "./evidence-store.ts";
import { toEvidenceRecord } from "./evidence-record.ts";
import { createEvidenceStore } from "./create-evidence-store.ts";

const text = (sent: string): { type: string; text: string } => ({ type: "text", text: sent });
const read = (item: EvidenceItem | null): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(item!.read());

describe("the evidence store", () => {
  it("keeps an output with its hash, size, time, tool, arguments and shape", () => {
    const store = createEvidenceStore({ conversationId: "c1", now: () => new Date("2026-01-02T03:04:05Z") });
    const sent = '[{"price": 1.5}, {"price": 2}]';
    const item = store.add({ tool: "market__get_price", arguments: { symbol: "BTC" }, output: { content: [text(sent)] } });
    expect(item.tenant).toBe("local");
    expect(toEvidenceRecord(item)).toEqual({
      schemaVersion: 1,
      alias: "get_price_1",
      source: "tool",
      tool: "market__get_price",
      arguments: { symbol: "BTC" },
      at: "2026-01-02T03:04:05.000Z",
      sha256: createHash("sha256").update(sent).digest("hex"),
      bytes: sent.length,
      format: "json",
      shape: { kind: "records", rows: 2, columns: ["price"], columnCount: 1, columnsFromSample: false, path: [] },
      attachments: [],
    });
    expect(read(item)).toBe(sent);
    expect(store.toolOutputsByAlias.get("get_price_1")).toBe(item);
    expect(store.get("get_price_2")).toBeNull();
  });

  it("gives every output of a conversation its own alias, and results result_1", () => {
    const store = createEvidenceStore();
    for (let call = 0; call < 3; call++) store.add({ tool: "get_price", output: "1" });
    store.addResult({ json: '{"total": 12345678901234567890}', from: "code_interpreter" });
    store.addData({ name: "sales", format: "csv", bytes: Buffer.from("a,b\n1,2\n") });
    expect(store.aliases()).toEqual(["get_price_1", "get_price_2", "get_price_3", "result_1", "sales"]);
    expect(read(store.get("result_1"))).toBe('{"total": 12345678901234567890}');
    expect(store.get("sales")).toMatchObject({ source: "data", format: "csv", shape: { kind: "table", lines: 2 } });
  });

  it("keeps JSON text byte for byte, with integers past 2^53 and long decimals", () => {
    const sent = ' {"id": 9007199254740993,\n "rate": 0.1000000000000000055511151231257827} ';
    const item = createEvidenceStore().add({ tool: "t", output: { content: [text(sent)] } });
    expect(read(item)).toBe(sent);
    expect(item.precisionLoss).toBeUndefined();
  });

  it("keeps any JSON text exactly", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (sent) => {
        const item = createEvidenceStore().add({ tool: "t", output: { content: [text(sent)] } });
        expect([item.format, read(item)]).toEqual(["json", sent]);
      }),
    );
  });

  it("returns 439 rows of 517 KB unchanged", () => {
    const rows = Array.from({ length: 439 }, (_, id) => ({ id, text: "x".repeat(1150) }));
    const store = createEvidenceStore();
    const item = store.add({ tool: "list_rows", output: { content: [text(JSON.stringify({ rows }))] } });
    expect(item.bytes).toBeGreaterThan(510_000);
    expect(JSON.parse(read(item))).toEqual({ rows });
    expect(item.shape).toMatchObject({ rows: 439, path: ["rows"], columns: ["id", "text"], columnsFromSample: false });
  });

  it("refuses an output that exceeds the budget, names the numbers and keeps no part of it", () => {
    const store = createEvidenceStore({ budget: { totalBytes: 10 } });
    store.add({ tool: "t", output: "12345678" });
    const output = { content: [text("abc"), { type: "image", data: "AAAA", mimeType: "image/png" }] };
    expect(() => store.add({ tool: "t", output })).toThrow(
      "t_2 has 6 bytes. With it, the evidence of this conversation would have 14 bytes; 10 are allowed.",
    );
    expect([store.aliases(), store.totalBytes]).toEqual([["t_1"], 8]);
  });

  it("refuses to preview an unknown alias", () => {
    expect(() => createEvidenceStore().preview("nope_1")).toThrow("There is no output named nope_1. Known aliases: none.");
  });

  it("is not affected when the caller changes an output later", () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const given = { symbol: "BTC" };
    const item = createEvidenceStore().add({ tool: "t", arguments: given, output: bytes });
    bytes[0] = 9;
    given.symbol = "ETH";
    expect([[...item.read()], item.arguments, item.format]).toEqual([[1, 2, 3], { symbol: "BTC" }, "bytes"]);
  });

  it("records its tenant on every item", () => {
    const store = createEvidenceStore({ tenant: "acme" });
    expect([store.tenant, store.add({ tool: "t", output: 1 }).tenant]).toEqual(["acme", "acme"]);
  });
});
