import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { createOutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { CallContext } from "./call-context.ts";
import { filterAnswer } from "./filter-answer.ts";

const reader = createOutputReader();
afterAll(() => reader.close());

/** What the SDK reads of a body that arrives in chunks, and what the call is told. */
async function filter({ text, type = "text/event-stream", chunk = text.length, maxMessageBytes = 10_000_000 }: Body) {
  const bytes = Buffer.from(text);
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, i) => bytes.subarray(i * chunk, (i + 1) * chunk));
  const lost: Error[] = [];
  const context: CallContext = { headers: {}, isToolCall: true, onLost: (error) => lost.push(error) };
  const headers = { "content-type": type, "content-length": String(bytes.length) };
  const response = filterAnswer(new Response(ReadableStream.from(chunks), { headers }), { maxMessageBytes, context, reader });
  const seen = await response.text().catch((error: Error) => error);
  return { seen, context, lost, headers: Object.fromEntries(response.headers) };
}

interface Body {
  readonly text: string;
  readonly type?: string;
  readonly chunk?: number;
  readonly maxMessageBytes?: number;
}

const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"id":9007199254740993,"é":1.10}}}`;
const structuredJson = `{"id":9007199254740993,"é":1.10}`;
const progress = `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n`;

it("passes a small document as it came, and keeps the digits of its structured content", async () => {
  const { seen, context, lost, headers } = await filter({ text: answer, type: "application/json" });
  expect([seen, lost, headers]).toEqual([answer, [], { "content-type": "application/json" }]);
  expect(context).toMatchObject({ answerBytes: Buffer.byteLength(answer), structuredJson });
});

it("passes events as they came, wherever the chunks are cut", async () => {
  const text = `: hello\n\n${progress}data: ${answer}\r\n\r\n`;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async (chunk) => {
      const { seen, context, lost } = await filter({ text, chunk });
      expect([seen, lost, context.structuredJson]).toEqual([text, [], structuredJson]);
    }),
    { numRuns: 20 },
  );
});

it("reads a large answer in the thread, and leaves a small one in its place", async () => {
  const large = JSON.stringify({ jsonrpc: "2.0", id: 7, result: { content: [{ type: "text", text: "x".repeat(600_000) }] } });
  const small = { jsonrpc: "2.0", id: 7, result: { content: [] } };
  const document = await filter({ text: large, type: "application/json", chunk: 50_000 });
  expect(JSON.parse(String(document.seen))).toEqual(small);
  const stream = await filter({ text: `${progress}event: message\ndata: ${large}\n\n`, chunk: 50_000 });
  expect(stream.seen).toBe(`${progress}event: message\ndata: ${JSON.stringify(small)}\n\n`);
  for (const { context, lost } of [document, stream]) {
    expect([context.answerBytes, typeof context.read, lost]).toEqual([large.length, "object", []]);
  }
});

const filler = "x".repeat(600_000);
const others = [
  ["an error", `{"jsonrpc":"2.0","id":7,"error":{"code":1.0,"message":"${filler}"}}`],
  ["a result that asks for something", `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","x":"${filler}"}}`],
  ["a request", `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"${filler}"}}`],
  ["a batch", `[{"jsonrpc":"2.0","id":7,"result":{"x":"${filler}"}}]`],
] as const;

it.each(others)("passes a large message that is %s as it came", async (_, message) => {
  const document = await filter({ text: message, type: "application/json", chunk: 50_000 });
  expect(document.seen === message, String(document.seen).slice(0, 200)).toBe(true);
  const events = `event: message\ndata: ${message}\n\n${progress}data: ${message.replace(",", ",\ndata: ")}\r\n\r\n`;
  const stream = await filter({ text: events, chunk: 50_000 });
  expect(stream.seen === events, String(stream.seen).slice(0, 200)).toBe(true);
});

it("reports a stream that ends without an answer, unless it can be resumed", async () => {
  expect((await filter({ text: progress })).lost).toEqual([new Error("The stream ended without an answer.")]);
  expect((await filter({ text: `id: 5\n${progress}` })).lost).toEqual([]);
});

it.each(["application/json", "text/event-stream"])("breaks off a message that is longer than allowed (%s)", async (type) => {
  const tooLong = new RangeError("a message is longer than 50 bytes");
  const { seen, lost } = await filter({ text: `data: ${answer}\n\n`, type, chunk: 10, maxMessageBytes: 50 });
  expect([seen, lost]).toEqual([tooLong, [tooLong]]);
});
