import { describe, expect, it, vi } from "vitest";
import { readToolOutput } from "./read-tool-output.ts";
import type { OutputPart } from "./output-part.ts";
import type { ToolOutput } from "./evidence-store.ts";

const text = (sent: string): { type: string; text: string } => ({ type: "text", text: sent });
const parts = (output: unknown, more: Partial<ToolOutput> = {}): [string, string, string][] =>
  readToolOutput({ tool: "t", output, ...more }).map(({ part, format, body }: OutputPart) => [
    part,
    format,
    Buffer.from(body as string).toString(),
  ]);

describe("reading a tool output", () => {
  it("puts structured content first and does not keep the same text again", () => {
    const structuredContent = { rows: [1, 2] };
    expect(parts({ content: [text('{"rows":[1,2]}')], structuredContent })).toEqual([["json", "json", '{"rows":[1,2]}']]);
    expect(parts({ structuredContent })).toEqual([["json", "json", '{"rows":[1,2]}']]);
  });

  it("recognizes a repeated text with more digits or another key order, and marks what the parsed value lost", () => {
    const sent = '{"b": 1, "id": 9007199254740993}';
    const [only, ...rest] = readToolOutput({
      tool: "t",
      output: { content: [text(sent)], structuredContent: { id: 9007199254740992, b: 1 } },
    });
    const precisionLoss = { integersPast2To53: 1, nonFinite: 0, unrepresentable: 0 };
    expect([only.body, only.precisionLoss, rest]).toEqual(['{"id":9007199254740992,"b":1}', precisionLoss, []]);
  });

  it("recognizes the text of a wrapped result: complete, one text per item, or a plain string", () => {
    const wrapped = (result: unknown, ...texts: string[]): unknown => ({ content: texts.map(text), structuredContent: { result } });
    expect(parts(wrapped([1, 2], "[1, 2]"))).toEqual([["json", "json", '{"result":[1,2]}']]);
    expect(parts(wrapped([{ a: 1 }, { a: 2 }], '{"a": 1}', '{"a": 2}'))).toEqual([["json", "json", '{"result":[{"a":1},{"a":2}]}']]);
    expect(parts(wrapped("hello", "hello"))).toEqual([["json", "json", '{"result":"hello"}']]);
    expect(parts(wrapped(["a", "b"], "a", "b"))).toEqual([["json", "json", '{"result":["a","b"]}']]);
    expect(parts(wrapped(["a"], "a"))).toEqual([["json", "json", '{"result":["a"]}']]);
    expect(parts(wrapped(["a"], "b"))).toHaveLength(2);
    expect(parts(wrapped([{ a: 1, b: null }], '{"b": null, "a": 1}'))).toHaveLength(1);
    expect(parts(wrapped([{ a: 1, b: null }], '{"b": null, "c": 1}'))).toHaveLength(2);
  });

  it("does not write large structured content as JSON again to compare it with a text", () => {
    const structuredContent = { rows: Array.from({ length: 100_000 }, (_, id) => ({ id, price: 1.5 })), total: 100_000 };
    const structuredJson = JSON.stringify(structuredContent);
    const spaced = JSON.stringify(structuredContent, null, 1);
    const stringify = vi.spyOn(JSON, "stringify");
    const read = (sent: string): number =>
      readToolOutput({ tool: "t", output: { content: [text(sent)], structuredContent }, structuredJson }).length;
    const found = ["100000 rows found", spaced, spaced.replace("1.5", "2.5")].map(read);
    const { length } = stringify.mock.calls;
    stringify.mockRestore();
    expect([found, length]).toEqual([[2, 1, 2], 0]);
  });

  it("keeps text beside structured data", () => {
    expect(parts({ content: [text("2 rows found")], structuredContent: { rows: [1, 2] } })).toEqual([
      ["json", "json", '{"rows":[1,2]}'],
      ["text", "text", "2 rows found"],
    ]);
  });

  it("marks a parsed value whose integers lost precision", () => {
    const [part] = readToolOutput({ tool: "t", output: { structuredContent: { a: 2 ** 53 + 2, b: [Number.NaN], c: 1.5 } } });
    expect(part.precisionLoss).toEqual({ integersPast2To53: 1, nonFinite: 1, unrepresentable: 0 });
  });

  it("prefers the original text of structured content if the transport has it", () => {
    const [part] = readToolOutput({
      tool: "t",
      output: { structuredContent: { a: 2 ** 60 } },
      structuredJson: '{"a": 1152921504606846977}',
    });
    expect([part.body, part.precisionLoss]).toEqual(['{"a": 1152921504606846977}', undefined]);
  });

  it("joins several JSON texts to one array, each as sent", () => {
    expect(parts({ content: [text('{"id": 12345678901234567890}'), text("7")] })).toEqual([
      ["json", "json", '[{"id": 12345678901234567890},7]'],
    ]);
  });

  it("puts JSON before text, and joins texts to a list of strings", () => {
    expect(parts({ content: [text("Here it is:"), text('{"a": 1}'), text("42")] })).toEqual([
      ["json", "json", '{"a": 1}'],
      ["text", "json", '["Here it is:","42"]'],
    ]);
    expect(parts({ content: [text("just words")] })).toEqual([["text", "text", "just words"]]);
  });

  it("reads JSON with NaN, as Python writes it, as JSON and leaves it as sent", () => {
    const [part] = readToolOutput({ tool: "t", output: '{"a": NaN, "b": "NaN \\" -Infinity", "c": -Infinity}' });
    expect(part).toMatchObject({ format: "json", isStrictJson: false, value: { a: null, b: 'NaN " -Infinity', c: null } });
    expect(part.body).toContain("-Infinity}");
    expect(parts("NaN")).toEqual([["text", "text", "NaN"]]);
  });

  it("keeps images, audio and resources as bytes or in their own format", () => {
    const content = [
      { type: "image", data: Buffer.from("png").toString("base64"), mimeType: "image/png" },
      { type: "resource", resource: { uri: "file:///a.csv", mimeType: "text/csv; charset=utf-8", text: "a\n1" } },
      {
        type: "resource",
        resource: { uri: "file:///b", mimeType: "application/vnd.apache.parquet", blob: Buffer.from("PAR1").toString("base64") },
      },
      { type: "resource_link", uri: "file:///c", name: "c" },
      { type: "resource", resource: { uri: "file:///d", mimeType: "constructor", text: '{"a":1}' } },
    ];
    expect(parts({ content })).toEqual([
      ["image", "bytes", "png"],
      ["resource", "csv", "a\n1"],
      ["resource", "parquet", "PAR1"],
      ["resource", "json", '{"a":1}'],
      ["links", "json", '[{"type":"resource_link","uri":"file:///c","name":"c"}]'],
    ]);
  });

  it("keeps content of unknown types", () => {
    expect(parts({ content: [text("1"), { type: "hologram", data: 1 }, null] }, { as: "mcp" })).toEqual([
      ["json", "json", "1"],
      ["other", "json", '[{"type":"hologram","data":1},{"value":null}]'],
    ]);
  });

  it("keeps values that only resemble an MCP result as they are", () => {
    expect(parts({ content: [{ type: "paragraph" }] })).toEqual([["json", "json", '{"content":[{"type":"paragraph"}]}']]);
    expect(parts({ content: [] }, { as: "mcp" })).toEqual([["json", "json", '{"content":[]}']]);
  });

  it("writes big integers with their digits and dates as JSON does", () => {
    const [part] = readToolOutput({ tool: "t", output: { a: 12345678901234567890n, at: new Date(0), gone: undefined } });
    expect([part.body, part.precisionLoss]).toEqual(['{"a":12345678901234567890,"at":"1970-01-01T00:00:00.000Z"}', undefined]);
  });

  it("marks values without a JSON form, and refuses cycles", () => {
    const [part] = readToolOutput({ tool: "t", output: { a: new Map([[1, 2]]), b: () => 1 } });
    expect(part.precisionLoss).toEqual({ integersPast2To53: 0, nonFinite: 0, unrepresentable: 2 });
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(() => readToolOutput({ tool: "t", output: cycle })).toThrow(
      "The output cannot be written as JSON: Converting circular structure to JSON",
    );
  });

  it("escapes unpaired surrogates in JSON, and marks them in text", () => {
    expect(parts('["\uD800"]')).toEqual([["json", "json", '["\\ud800"]']]);
    expect(readToolOutput({ tool: "t", output: "a\uD800" })[0].precisionLoss).toMatchObject({ unrepresentable: 1 });
  });
});
