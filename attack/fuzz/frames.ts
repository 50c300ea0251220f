import { mutateBytes, mutateValues, type GenerateOptions } from "./mutate.ts";

/** A frame of a worker: its header, and the text of its body. */
interface SentFrame {
  readonly header: unknown;
  readonly body: string;
}

const CELL = 1;
const error = {
  type: "ValueError",
  message: "no",
  line: 1,
  column: 2,
  traceback: "…",
  limit: { name: "artifacts", allowed: 20, seen: 21 },
};
const chart = '{"spec":{"type":"line","xKey":"a","series":[{"key":"b","label":"B"}]},"rows":[{"a":1,"b":2}]}';

/** What an honest worker could send while cell 1 runs. */
const sequences: readonly (readonly SentFrame[])[] = [
  [{ header: { type: "output", cell: CELL, stream: "stdout", omittedBytes: 3 }, body: "text" }],
  [
    { header: { type: "chunk", of: "image" }, body: "\u0089PNG" },
    { header: { type: "artifact", cell: CELL, kind: "image", alt: "A line that rises", title: null }, body: "{}" },
  ],
  [{ header: { type: "artifact", cell: CELL, kind: "chart" }, body: chart }],
  [
    { header: { type: "chunk", of: "result" }, body: "[1," },
    { header: { type: "done", cell: CELL, status: "ok", diagnostics: { nonFinite: [{ path: "$", count: 1 }] } }, body: "2]" },
  ],
  [
    {
      header: { type: "done", cell: CELL, status: "python_error", error, diagnostics: {}, leftBehind: { threads: 1, processes: 1 } },
      body: "",
    },
  ],
  [{ header: { type: "ended", cell: CELL, exitCode: 1, signal: 9, scratchChanged: ["a"] }, body: "" }],
  [{ header: { type: "lost", detail: "no" }, body: "" }],
];

const done: readonly SentFrame[] = [{ header: { type: "done", cell: CELL, status: "ok", diagnostics: {} }, body: "1" }];

/** Bytes that a hostile worker sends while cell 1 runs: mutated headers and bodies in intact frames, and mutated bytes. */
export function generateFrames({ seed, count }: GenerateOptions): Buffer[] {
  const half = Math.ceil(count / 2);
  const intact = mutateValues(sequences, { seed, count: half }).map((frames) => Buffer.concat([...toFrames(frames), ...done.map(encode)]));
  const valid = sequences.map((frames) => Buffer.concat([...frames, ...done].map(encode)));
  return [...intact, ...mutateBytes(valid, { seed, count: half })].slice(0, count);
}

function toFrames(mutated: unknown): Buffer[] {
  const list: unknown[] = Array.isArray(mutated) ? mutated : [mutated];
  return list.slice(0, 600).map((one) => {
    const { header, body } = Object(one) as Record<string, unknown>;
    return encode({ header: header ?? one, body: typeof body === "string" ? body : JSON.stringify(body ?? null) });
  });
}

function encode({ header, body }: SentFrame): Buffer {
  const [head, content] = [Buffer.from(JSON.stringify(header) ?? "null"), Buffer.from(body)];
  const prefix = Buffer.alloc(12);
  prefix.writeUInt32BE(0x534c5501, 0);
  prefix.writeUInt32BE(head.length, 4);
  prefix.writeUInt32BE(content.length, 8);
  return Buffer.concat([prefix, head, content]);
}
