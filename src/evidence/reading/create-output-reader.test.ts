import { afterAll, describe, expect, it } from "vitest";
import type { ToolOutput } from "../evidence-store.ts";
import { createEvidenceStore } from "../create-evidence-store.ts";
import { toEvidenceRecord } from "../evidence-record.ts";
import { ReadOutput } from "../output-part.ts";
import { createOutputReader, type LargeMessage } from "./create-output-reader.ts";
import type { CallIds } from "./read-output-process.ts";

const reader = createOutputReader();
afterAll(() => reader.close());

const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, city: id % 2 === 0 ? "Zürich" : "Basel", price: id / 7 }));
const json = JSON.stringify(rows).replace('"id":7,', '"id":12345678901234567890,');
const text = (sent: string) => ({ type: "text", text: sent });

const outputs: Record<string, Omit<ToolOutput, "tool">> = {
  "JSON text": { output: json },
  words: { output: "words and more of them, né\n".repeat(30_000) },
  "a value": { output: { rows, big: 2 ** 60, none: undefined }, as: "value" },
  "a value whose kind is not given": { output: rows },
  "a result with JSON text": { output: { content: [text(json)] } },
  "a result with structured content and its text": {
    output: { content: [text(JSON.stringify({ rows }, null, 1))], structuredContent: { rows } },
    structuredJson: JSON.stringify({ rows }),
  },
  "structured content with words beside it": {
    output: { content: [text("two words")], structuredContent: JSON.parse(json) as unknown },
    structuredJson: json,
  },
  "structured content that came parsed": {
    output: { content: [text("two words")], structuredContent: { rows, big: 2 ** 60, wrong: Number.NaN, none: undefined } },
    as: "mcp",
  },
  "structured content that came parsed, and its text with more digits": {
    output: { content: [text(`{"result":${json}}`)], structuredContent: { result: JSON.parse(json) as unknown } },
  },
  "a large text beside small structured content that came parsed": {
    output: { content: [text("word ".repeat(200_000))], structuredContent: { rows: [1] } },
  },
  bytes: { output: Buffer.alloc(600_000, 3) },
  "an image and a table": {
    output: {
      content: [
        { type: "image", data: Buffer.alloc(600_000, 7).toString("base64"), mimeType: "image/png" },
        { type: "resource", resource: { uri: "x:y", text: "a,b\n1,2\n", mimeType: "text/csv" } },
      ],
    },
  },
};

describe("a large output, read in a worker thread,", () => {
  it.each(Object.keys(outputs))("is kept exactly as if it were read on the main thread: %s", async (name) => {
    const output = { tool: "server__get", arguments: { a: 1 }, ...outputs[name]! };
    const options = { conversationId: "c", now: () => new Date(0), reader };
    const [atOnce, inThread] = [createEvidenceStore(options), createEvidenceStore(options)];
    expect((await reader.readOutput(output)).read).toBeInstanceOf(ReadOutput);
    const { alias } = atOnce.add(output);
    expect((await inThread.keep(output)).alias).toBe(alias);
    expect(inThread.aliases()).toEqual(atOnce.aliases());
    for (const one of atOnce.aliases()) {
      const [a, b] = [atOnce.get(one)!, inThread.get(one)!];
      expect(toEvidenceRecord(b)).toEqual(toEvidenceRecord(a));
      expect(Buffer.compare(a.read(), b.read())).toBe(0);
      expect(inThread.preview(one)).toEqual(atOnce.preview(one));
    }
  });

  it("is read on the main thread if it is small", async () => {
    const output = { tool: "t", output: { content: [text("[1]")] } };
    expect(await reader.readOutput(output)).toBe(output);
    expect(await reader.readResult({ json: "[1]" })).toBeNull();
    expect(await reader.readData({ name: "d", format: "json", bytes: Buffer.from("[1]") })).toBeNull();
  });

  it("may be the result of a cell or data", async () => {
    const store = createEvidenceStore({ reader });
    const result = await store.keepResult({ json, from: "code_interpreter" });
    const bytes = Buffer.from(json);
    const data = await store.keepData({ name: "prices", format: "json", bytes });
    expect([result, data].map(({ alias, bytes: size, shape }) => [alias, size, shape.rows])).toEqual([
      ["result_1", bytes.length, 20_000],
      ["prices", bytes.length, 20_000],
    ]);
    expect(bytes.length).toBeGreaterThan(0); // still the caller's
  });

  it("is refused if it needs too much memory, and the next one is read", { timeout: 120_000 }, async () => {
    const small = createOutputReader({ heapMegabytes: 64 });
    const store = createEvidenceStore({ reader: small });
    const values = `[${"[1],".repeat(4_000_000)}1]`;
    await expect(store.keep({ tool: "t", output: values })).rejects.toMatchObject({
      code: "OUTPUT_UNREADABLE",
      message: "The output could not be read: it needs more memory than is available.",
      hint: "Request less data from the tool at a time.",
    });
    expect((await store.keep({ tool: "t", output: json })).shape.rows).toBe(20_000);
    await small.close();
  });
});

describe("a large message", () => {
  const read = (sent: string, callIds: CallIds): Promise<LargeMessage> => reader.readMessage(Buffer.from(sent), callIds);
  const answer = (id: number, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

  it("that answers a call becomes parts and a small result", async () => {
    const message = await read(answer(5, `{"content":[],"structuredContent":${json},"_meta":{"a":1}}`), [4, 5]);
    expect({ ...message, read: null }).toEqual({ kind: "answer", id: 5, result: { _meta: { a: 1 }, content: [] }, read: null });
    const item = createEvidenceStore().add({ tool: "t", output: {}, read: (message as { read: ReadOutput }).read });
    expect(Buffer.from(item.read()).toString()).toBe(json);
  });

  it("with isError keeps its texts", async () => {
    const structured = '{"error_kind":"upstream_http"}';
    const message = await read(
      answer(5, `{"isError":true,"content":[{"type":"text","text":"${"no ".repeat(200_000)}"}],"structuredContent":${structured}}`),
      "any",
    );
    const { result } = message as { result: Record<string, unknown> };
    expect(result).toEqual({
      isError: true,
      content: [text("no ".repeat(200_000).slice(0, 262_144))],
      structuredContent: { error_kind: "upstream_http" },
    });
  });

  it("is never cut inside a character", async () => {
    const faces = `x${"\u{1F600}".repeat(300_000)}`;
    const message = await read(answer(5, `{"isError":true,"content":[{"type":"text","text":"${faces}"}]}`), "any");
    const { result } = message as { result: Record<string, unknown> };
    expect(result["content"]).toEqual([text(faces.slice(0, 262_143))]);
    expect(await read(faces, [5])).toEqual({ kind: "garbage", text: faces.slice(0, 199) });
  });

  it.each([
    ["another request's answer", answer(6, `{"tools":${json}}`)],
    ["a request", `{"jsonrpc":"2.0","id":5,"method":"m","params":${json}}`],
    ["an answer that asks for something", answer(5, `{"resultType":"input_required","structuredContent":1,"x":${json}}`)],
    ["several messages", `[${answer(5, json)},{}]`],
  ])("is passed on unchanged if it is %s", async (_, sent) => {
    const message = await read(sent, [5]);
    expect([message.kind, Buffer.from((message as { bytes: Uint8Array }).bytes).toString()]).toEqual(["other", sent]);
  });

  it("is reported as garbage if it is not JSON", async () => {
    const broken = answer(5, `{"structuredContent":${json.slice(0, -1)},]}`);
    expect(await read(broken, [5])).toEqual({ kind: "garbage", text: broken.slice(0, 200) });
    expect(await read(`${json}}`, [5])).toEqual({ kind: "garbage", text: json.slice(0, 200) });
  });

  it("may have 8 MB if it does not answer a call", async () => {
    const sent = answer(6, `"${"x".repeat(9_000_000)}"`);
    await expect(read(sent, [5])).rejects.toMatchObject({
      code: "OUTPUT_UNREADABLE",
      message: `a message of ${sent.length} bytes could not be read: it is not the answer to a tool call, and other messages may have 8388608 bytes`,
    });
  });
});
