import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createEvidenceStore } from "../create-evidence-store.ts";

interface Read {
  alias: string;
  bytes: number;
  rows?: number;
  first?: unknown[];
  last?: unknown[];
  rowsNotShown?: number;
  value?: unknown;
  complete?: true;
  [other: string]: unknown;
}

function previewOf(output: unknown, maxBytes?: number): Read {
  const store = createEvidenceStore();
  const { alias } = store.add({ tool: "get_rows", output });
  return JSON.parse(store.preview(alias, { ...(maxBytes === undefined ? {} : { maxBytes }) }).json) as Read;
}

const rows = Array.from({ length: 439 }, (_, id) => ({
  id,
  symbol: ["BTC", "ETH"][id % 2],
  at: new Date(1_700_000_000_000 + id * 86_400_000).toISOString().slice(0, 10),
  price: id === 7 ? null : id * 1.5,
  note: "n".repeat(1000),
  ...(id === 3 ? { rare: true } : {}),
}));

describe("a preview", () => {
  it("has the alias, size, rows, schema, first and last rows, and says where the whole output is", () => {
    const preview = previewOf(JSON.stringify({ source: "exchange", data: rows }));
    expect(preview).toMatchObject({
      alias: "get_rows_1",
      tool: "get_rows",
      format: "json",
      kind: "records",
      rows: 439,
      rowsAt: 'get_rows_1["data"]',
      columns: 6,
      schemaFrom: "all 439 rows",
      around: { source: "exchange", data: "… 439 rows, in first and last" },
      note: "The whole output is available in Python as get_rows_1.",
    });
    expect(preview["schema"]).toMatchObject({
      fields: {
        data: {
          length: 439,
          items: {
            fields: {
              id: { type: "integer", min: 0, max: 438 },
              symbol: { type: "string", values: ["BTC", "ETH"] },
              at: { dates: ["2023-11-14", "2025-01-25"] },
              price: { type: "number or null", nulls: 0.002, min: 0, max: 657 },
              note: { characters: [1000, 1000] },
              rare: { type: "boolean", missing: 0.998 },
            },
          },
        },
      },
    });
    expect(preview.first![0]).toMatchObject({ id: 0 });
    expect(preview.last!.at(-1)).toMatchObject({ id: 438 });
    expect(preview.first!.length + preview.last!.length + preview.rowsNotShown!).toBe(439);
  });

  it("shows a small output completely, with its original digits", () => {
    const store = createEvidenceStore();
    store.add({ tool: "t", output: '{"id": 9007199254740993}' });
    const { json, detail } = store.preview("t_1");
    expect(detail).toBe("whole");
    expect(json).toContain('"value":{"id": 9007199254740993},"complete":true');
  });

  it("shows the exact digits of long numbers in rows, and marks rounded ones", () => {
    const long = (pad: number): string => JSON.stringify([{ id: 1, pad: "p".repeat(pad) }]).replace('"id":1', '"id":9007199254740993');
    const store = createEvidenceStore();
    store.add({ tool: "t", output: long(10_000) });
    store.add({ tool: "t", output: long(2_000_000) });
    expect(store.preview("t_1").json).toContain('"first":[{"id":9007199254740993,');
    expect(store.preview("t_2").json).toContain('"first":[{"id":"~9007199254740992",');
    expect(store.preview("t_2").json).toContain("Numbers with ~ are rounded here, not there.");
  });

  it("says when the schema is from a sample, but counts rows exactly", () => {
    const preview = previewOf(JSON.stringify(Array.from({ length: 100_000 }, (_, id) => ({ id, half: id / 2 }))));
    expect(preview.rows).toBe(100_000);
    expect(preview["schemaFrom"]).toBe("a sample of 20000 of 100000 rows: nulls, ranges and values are of the sample");
    expect(preview["columnsSeen"]).toBe(2);
    expect(preview["schema"]).toMatchObject({ fields: { id: { min: 0, max: 99_999 } } });
  });

  it("reads a smaller sample of an output of many megabytes, and says so", () => {
    const preview = previewOf(JSON.stringify(Array.from({ length: 30_000 }, (_, id) => ({ id, text: "x".repeat(300) }))));
    expect([preview.rows, preview.rowsNotShown! + preview.first!.length + preview.last!.length]).toEqual([30_000, 30_000]);
    expect(preview["schemaFrom"]).toBe("a sample of 5000 of 30000 rows: nulls, ranges and values are of the sample");
    expect(preview["schema"]).toEqual({
      type: "object",
      fields: { id: { type: "integer", min: 0, max: 29_999 }, text: { type: "string", characters: [300, 300] } },
    });
  });

  it("shows the start and end of a text and counts the rest", () => {
    const preview = previewOf("line\n".repeat(10_000));
    expect(preview).toMatchObject({ format: "text", kind: "text", lines: 10_000, characters: 50_000 });
    const shown = (preview["start"] as string).length + (preview["end"] as string).length;
    expect(shown + (preview["charactersNotShown"] as number)).toBe(50_000);
    expect(shown).toBeGreaterThan(1000);
  });

  it("describes bytes by type and size", () => {
    const preview = previewOf({ content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] });
    expect(preview).toMatchObject({ format: "bytes", kind: "bytes", mimeType: "image/png", bytes: 3 });
  });

  it("shows CSV as text, which is never read in a wrong dialect, and reads JSON lines", () => {
    const store = createEvidenceStore();
    const csv = `name;n\n"a; ""b""";1,5\n${Array.from({ length: 600 }, (_, n) => `row${n};${n}`).join("\n")}\n`;
    store.addData({ name: "table", format: "csv", bytes: Buffer.from(csv) });
    store.addData({ name: "lines", format: "jsonl", bytes: Buffer.from('{"a":1}\n\n{"a":2}\n') });
    const table = JSON.parse(store.preview("table").json) as Read;
    expect(table).toMatchObject({ kind: "table", lines: 602, start: expect.stringMatching(/^name;n\n"a; ""b""";1,5\n/) as string });
    expect(table).toMatchObject({ end: expect.stringMatching(/\nrow599;599\n$/) as string });
    expect(JSON.parse(store.preview("lines").json)).toMatchObject({ kind: "records", rows: 2, first: [{ a: 1 }, { a: 2 }] });
  });

  it("reads an object with many similar values as rows by key", () => {
    const byKey = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, { n, pad: "x".repeat(50) }]));
    const preview = previewOf(byKey);
    expect(preview).toMatchObject({ kind: "map", rows: 300, schema: { type: "object", fields: { n: { min: 0, max: 299 } } } });
    expect(preview.first![0]).toMatchObject({ k0: { n: 0 } });
  });

  it("names as many columns as fit, and cuts rows before it drops them", () => {
    const table = Array.from({ length: 500 }, (_, row) => Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`c${n}`, row * n])));
    const seen = [600, 1000, 2048, 4096].map((maxBytes) => {
      const { schema, first = [] } = previewOf(table, maxBytes) as Read & { schema: { fields: object; fieldsNotShown?: number } };
      const fields = Object.values(schema.fields);
      expect(fields.length + (schema.fieldsNotShown ?? 0)).toBe(40);
      return { fields: fields.length, withRanges: fields.filter((field) => typeof field === "object").length, rows: first.length };
    });
    expect(seen).toEqual([
      { fields: 18, withRanges: 0, rows: 0 },
      { fields: 19, withRanges: 0, rows: 1 },
      { fields: 40, withRanges: 11, rows: 1 },
      { fields: 40, withRanges: 40, rows: 2 },
    ]);
  });

  it("fills its budget with a nested object, level by level", () => {
    const leaf = (n: number) => ({ on: n % 2 === 0, level: { min: n, max: n * 2, note: "n".repeat(80) } });
    const settings = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`s${n}`, leaf(n)]));
    const deep = { account: { id: 1, name: "x".repeat(700), settings }, billing: { plan: "free", address: { city: "Zürich" } } };
    for (const maxBytes of [1000, 2048, 4096]) {
      const store = createEvidenceStore();
      store.add({ tool: "get", output: deep });
      const { json, bytes } = store.preview("get_1", { maxBytes });
      expect(bytes).toBeGreaterThan(maxBytes * 0.8);
      expect(JSON.parse(json)).toMatchObject({
        schema: { fields: { account: {}, billing: {} } },
        value: { account: { id: 1 }, billing: { plan: "free" } },
      });
    }
  });

  it("counts more columns than it names", () => {
    const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`c${n}`, n]));
    const preview = previewOf([wide, wide]) as Read & { schema: { fields: object; fieldsNotShown: number } };
    expect(preview).toMatchObject({ kind: "records", rows: 2, columns: 2000 });
    expect(Object.keys(preview.schema.fields).length + preview.schema.fieldsNotShown).toBe(2000);
  });

  it("survives JSON nested deeper than the stack", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    expect(previewOf(deep)).toMatchObject({ format: "json", rows: 1, bytes: 400_000 });
    expect(previewOf(deep.replace("[]", "[12345678901234567890]"))).toMatchObject({ format: "json", rows: 1 });
  });

  it("keeps keys that JavaScript treats specially", () => {
    const preview = previewOf(`[{"__proto__": 1, "constructor": 2, "toJSON": 3, "pad": "${"x".repeat(5000)}"}]`);
    expect(Object.keys(preview.first![0] as object)).toEqual(["__proto__", "constructor", "toJSON", "pad"]);
  });

  it("is valid JSON within its budget, with the alias and true counts, for any JSON", () => {
    const json = fc.json({ maxDepth: 5, stringUnit: "binary" });
    const table = fc
      .array(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 2 })), { maxLength: 80 })
      .map((value) => JSON.stringify(value));
    fc.assert(
      fc.property(fc.oneof(json, table), fc.integer({ min: 256, max: 6000 }), (sent, maxBytes) => {
        const store = createEvidenceStore();
        const { alias } = store.add({ tool: "any", output: sent });
        const preview = store.preview(alias, { maxBytes });
        expect(Buffer.byteLength(preview.json)).toBe(preview.bytes);
        expect(preview.bytes).toBeLessThanOrEqual(maxBytes);
        const read = JSON.parse(preview.json) as Read;
        expect([read.alias, read.bytes]).toEqual([alias, Buffer.byteLength(sent)]);
        const value: unknown = JSON.parse(sent);
        if (Array.isArray(value)) {
          expect(read.rows).toBe(value.length);
          if (read.complete) expect(read.value).toEqual(value);
          if (read.first) expect(read.first.length + (read.last?.length ?? 0) + (read.rowsNotShown ?? 0)).toBe(value.length);
        }
      }),
      { numRuns: 400 },
    );
  });

  it("is valid JSON within its budget for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 9000, size: "max" }), fc.integer({ min: 256, max: 6000 }), (sent, maxBytes) => {
        const store = createEvidenceStore();
        store.add({ tool: "any", output: sent });
        const { json, bytes } = store.preview("any_1", { maxBytes });
        expect(bytes).toBeLessThanOrEqual(maxBytes);
        expect(JSON.parse(json)).toMatchObject({ alias: "any_1" });
      }),
    );
  });
});

describe("previews of a step", () => {
  it("fit into 24 KB together: the oldest shrink first and lose rows before the schema", () => {
    const store = createEvidenceStore();
    for (let call = 0; call < 12; call++) store.add({ tool: "get_rows", output: JSON.stringify(rows) });
    const previews = store.previewStep(store.aliases());
    expect(previews.map(({ alias }) => alias)).toEqual(store.aliases());
    expect(previews.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(24_576);
    const details = previews.map(({ detail }) => detail);
    expect(details[0]).toBe("schema");
    expect(details.at(-1)).toBe("rows");
    expect(details).toEqual(details.toSorted((a, b) => Number(a === "rows") - Number(b === "rows")));
    expect(JSON.parse(previews[0]!.json)).toMatchObject({ rows: 439, rowsNotShown: 439 });
  });

  it("shrink from the oldest on: first rows, then schemas, then counts, and aliases last", () => {
    const store = createEvidenceStore();
    for (let call = 0; call < 6; call++) store.add({ tool: "get_rows", output: JSON.stringify(rows) });
    const order = ["rows", "schema", "counts", "alias"];
    const seen = new Set<string>();
    for (let maxBytes = 24_576; maxBytes >= 500; maxBytes -= 40) {
      const details = store.previewStep(store.aliases(), { maxBytes }).map(({ detail }) => detail);
      if (details.includes("list")) break;
      const ranks = details.map((detail) => order.indexOf(detail));
      expect(ranks, "older previews have less detail").toEqual(ranks.toSorted((a, b) => b - a));
      expect(Math.max(...ranks) - Math.min(...ranks), "all lose one part before any loses the next").toBeLessThanOrEqual(1);
      seen.add(details.join(" "));
    }
    for (const detail of order) expect([...seen]).toContain(Array(6).fill(detail).join(" "));
    expect(seen.size).toBeGreaterThanOrEqual(1 + 3 * 6);
  });

  it("keep every alias within any budget", () => {
    fc.assert(
      fc.property(
        fc.array(fc.json({ maxDepth: 4 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 0, max: 6000 }),
        (outputs, more) => {
          const store = createEvidenceStore();
          for (const output of outputs) store.add({ tool: "any", output });
          const maxBytes = outputs.length * 120 + 256 + more;
          const previews = store.previewStep(store.aliases(), { maxBytes });
          expect(previews.map(({ json }) => (JSON.parse(json) as Read).alias)).toEqual(store.aliases());
          expect(previews.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(maxBytes);
        },
      ),
    );
  });

  it("list the oldest aliases in one preview if they do not fit one by one", () => {
    const store = createEvidenceStore();
    for (let call = 0; call < 20; call++) store.add({ tool: "any", output: "1" });
    const [list, ...others] = store.previewStep(store.aliases(), { maxBytes: 1000 });
    const listed = store.aliases().slice(0, 20 - others.length);
    expect(list).toEqual({ alias: null, detail: "list", bytes: Buffer.byteLength(list!.json), json: list!.json });
    expect(JSON.parse(list!.json)).toEqual({
      outputs: listed.length,
      bytes: listed.length,
      aliases: listed,
      note: "No room for previews. All are whole in Python under their aliases.",
    });
    expect(others.length).toBeGreaterThan(5);
    expect(others.map(({ alias }) => alias)).toEqual(store.aliases().slice(listed.length));
  });

  it("count the aliases that do not fit, and say how to list them", () => {
    const store = createEvidenceStore();
    for (let call = 0; call < 20; call++) store.add({ tool: "any", output: "1" });
    const previews = store.previewStep(store.aliases(), { maxBytes: 300 });
    expect(previews.map(({ json }) => JSON.parse(json) as unknown)).toEqual([
      {
        outputs: 20,
        bytes: 20,
        aliases: store.aliases().slice(-14),
        aliasesNotShown: 6,
        note: "No room for previews. All are whole in Python under their aliases; list(inputs) there names every one.",
      },
    ]);
  });

  it("account for every alias, for any budget and number of outputs", () => {
    const tool = fc.constantFrom("a", "get_price", "a_tool_with_a_name_that_is_far_longer_than_names_should_be_in_any_catalog");
    fc.assert(
      fc.property(fc.array(tool, { minLength: 1, maxLength: 120 }), fc.integer({ min: 256, max: 12_000 }), (tools, maxBytes) => {
        const store = createEvidenceStore();
        for (const name of tools) store.add({ tool: name, output: '{"a": [1, 2, 3]}' });
        const previews = store.previewStep(store.aliases(), { maxBytes });
        expect(previews.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)).toBeLessThanOrEqual(maxBytes);
        const read = previews.map(({ json }) => JSON.parse(json) as Read & { aliases?: string[]; aliasesNotShown?: number });
        const shown = read.flatMap(({ alias, aliases }) => aliases ?? [alias]);
        expect(shown).toEqual(store.aliases().slice(tools.length - shown.length));
        expect(shown.length + (read[0]!.aliasesNotShown ?? 0)).toBe(tools.length);
      }),
      { numRuns: 50 },
    );
  });

  it("refuse only a budget that is too small for any preview", () => {
    const store = createEvidenceStore();
    store.add({ tool: "any", output: "1" });
    expect(() => store.preview("any_1", { maxBytes: 100 })).toThrow("A preview needs at least 256 bytes; the budget is 100.");
    expect(() => store.previewStep(["any_1"], { maxBytes: 100 })).toThrow("A preview needs at least 256 bytes; the budget is 100.");
    expect(store.previewStep([], { maxBytes: 100 })).toEqual([]);
  });
});
