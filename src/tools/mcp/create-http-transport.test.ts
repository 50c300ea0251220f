import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { createOutputReader } from "../../evidence/reading/create-output-reader.ts";
import type { RequestContext } from "./backend-connection.ts";
import { filterAnswer } from "./create-http-transport.ts";

const reader = createOutputReader();
afterAll(() => reader.close());

/** Filters a body that arrives in chunks. Returns what the SDK would read, and what the filter reported to the context. */
async function filter({ text, type = "text/event-stream", chunk = text.length, maxMessageBytes = 10_000_000 }: Body) {
  const bytes = Buffer.from(text);
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, i) => bytes.subarray(i * chunk, (i + 1) * chunk));
  const lost: Error[] = [];
  const context: RequestContext = { headers: {}, isToolCall: true, onLost: (error) => lost.push(error) };
  const headers = { "content-type": type, "content-length": String(bytes.length) };
  const response = filterAnswer(new Response(ReadableStream.from(chunks), { headers }), { maxMessageBytes, context, reader });
  const output = await response.text().catch((error: Error) => error);
  return { output, context, lost, headers: Object.fromEntries(response.headers) };
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

it("passes a small document on unchanged and notes the exact text of its structured content", async () => {
  const { output, context, lost, headers } = await filter({ text: answer, type: "application/json" });
  expect([output, lost, headers]).toEqual([answer, [], { "content-type": "application/json" }]);
  expect(context).toMatchObject({ answerBytes: Buffer.byteLength(answer), structuredJson });
});

it("passes events on unchanged, however they are split into chunks", async () => {
  const text = `: hello\n\n${progress}data: ${answer}\r\n\r\n`;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async (chunk) => {
      const { output, context, lost } = await filter({ text, chunk });
      expect([output, lost, context.structuredJson]).toEqual([text, [], structuredJson]);
    }),
    { numRuns: 20 },
  );
});

it("reads a large answer in the thread and passes on a small one instead", async () => {
  const large = JSON.stringify({ jsonrpc: "2.0", id: 7, result: { content: [{ type: "text", text: "x".repeat(600_000) }] } });
  const small = { jsonrpc: "2.0", id: 7, result: { content: [] } };
  const document = await filter({ text: large, type: "application/json", chunk: 50_000 });
  expect(JSON.parse(String(document.output))).toEqual(small);
  const stream = await filter({ text: `${progress}event: message\ndata: ${large}\n\n`, chunk: 50_000 });
  expect(stream.output).toBe(`${progress}event: message\ndata: ${JSON.stringify(small)}\n\n`);
  for (const { context, lost } of [document, stream]) {
    expect([context.answerBytes, typeof context.read, lost]).toEqual([large.length, "object", []]);
  }
});

const filler = "x".repeat(600_000);
const others = [
  ["an error", `{"jsonrpc":"2.0","id":7,"error":{"code":1.0,"message":"${filler}"}}`],
  ["a result that requires input", `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","x":"${filler}"}}`],
  ["a request", `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"${filler}"}}`],
  ["a batch", `[{"jsonrpc":"2.0","id":7,"result":{"x":"${filler}"}}]`],
] as const;

it.each(others)("passes on a large message that is %s unchanged", async (_, message) => {
  const document = await filter({ text: message, type: "application/json", chunk: 50_000 });
  expect(document.output === message, String(document.output).slice(0, 200)).toBe(true);
  const events = `event: message\ndata: ${message}\n\n${progress}data: ${message.replace(",", ",\ndata: ")}\r\n\r\n`;
  const stream = await filter({ text: events, chunk: 50_000 });
  expect(stream.output === events, String(stream.output).slice(0, 200)).toBe(true);
});

it("reports a stream that ends without an answer, unless it can be resumed", async () => {
  expect((await filter({ text: progress })).lost).toEqual([new Error("The stream ended without an answer.")]);
  expect((await filter({ text: `id: 5\n${progress}` })).lost).toEqual([]);
});

it.each(["application/json", "text/event-stream"])("stops at a message that is longer than allowed (%s)", async (type) => {
  const tooLong = new RangeError("a message is longer than 50 bytes");
  const { output, lost } = await filter({ text: `data: ${answer}\n\n`, type, chunk: 10, maxMessageBytes: 50 });
  expect([output, lost]).toEqual([tooLong, [tooLong]]);
});
