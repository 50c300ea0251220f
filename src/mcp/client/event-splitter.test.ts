import fc from "fast-check";
import { expect, it } from "vitest";
import type { LargeMessage } from "../../evidence/reading/create-output-reader.ts";
import { EventSplitter, type ServerEvent } from "./event-splitter.ts";

const line = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "é", " ", ":"), maxLength: 6 }).map((text) => `data:${text}`),
  fc.constantFrom("id: 7", "event: message", ": comment", "data", "retry: 1"),
);
const event = fc.tuple(fc.array(line, { minLength: 1, maxLength: 4 }), fc.constantFrom("\n", "\r\n"));

it("cuts at blank lines, wherever the chunks are cut, and passes on what came", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), fc.integer({ min: 1, max: 7 }), (events, size) => {
      const sent = Buffer.from(events.map(([lines, end]) => [...lines, "", ""].join(end)).join(""));
      const splitter = new EventSplitter(1_000, noLarge);
      const seen: ServerEvent[] = [];
      for (let at = 0; at < sent.length; at += size) seen.push(...splitter.push(sent.subarray(at, at + size)));
      expect(Buffer.concat([...seen.map(({ raw }) => raw), ...splitter.end()])).toEqual(sent);
      expect(seen.map(({ data, hasId }) => [data, hasId])).toEqual(
        events.map(([lines]) => {
          const data = lines.filter((one) => one.startsWith("data:")).map((one) => one.slice(5).replace(/^ /, ""));
          return [data.length === 0 ? null : data.join("\n"), lines.includes("id: 7")];
        }),
      );
    }),
  );
});

it("hands on data that grows large while it comes, with the other lines of its event", () => {
  const parts: Buffer[] = [];
  const splitter = new EventSplitter(3_000_000, () => ({
    bytes: 0,
    push: (chunk) => void parts.push(Buffer.from(chunk)),
    read: () => Promise.reject(new Error("not asked for")),
    drop: () => {},
  }));
  const long = "x".repeat(700_000);
  const sent = Buffer.from(`id: 1\ndata: [1,\ndata:"${long}",\nevent: message\ndata: 2]\n\ndata: small\n\n`);
  const seen: ServerEvent[] = [];
  for (let at = 0; at < sent.length; at += 65_536) seen.push(...splitter.push(sent.subarray(at, at + 65_536)));
  expect(seen.map(({ data, hasId, fields, large, raw }) => [data, hasId, fields, large !== null, raw.length])).toEqual([
    [null, true, "id: 1\nevent: message\n", true, 0],
    ["small", false, "", false, 13],
  ]);
  expect(JSON.parse(Buffer.concat(parts).toString())).toEqual([1, long, 2]);
});

it("refuses an event that is longer than allowed, before it has ended", () => {
  const splitter = new EventSplitter(5, noLarge);
  expect(() => splitter.push(Buffer.from("data: 1"))).toThrow(new RangeError("a message is longer than 5 bytes"));
});

function noLarge(): LargeMessage {
  throw new Error("nothing here is large");
}
