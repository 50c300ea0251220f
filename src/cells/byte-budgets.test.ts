import { afterAll, expect, test } from "vitest";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import type { Death, Frame, Lease } from "../sandbox/contract.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import { runCell, type ExecutedCell } from "./run-cell.ts";

const MB = 1024 * 1024;
const CELL = 7;
const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
const artifactChecker = createArtifactChecker();
afterAll(() => artifactChecker[Symbol.asyncDispose]());

const part = new Uint8Array(768 * 1024);
const chunk = (of: string, bytes = part.length): Frame => ({ header: { type: "chunk", of }, body: part.subarray(0, bytes) });
const artifact = (more: object = {}, body = ""): Frame => ({
  header: { type: "artifact", cell: CELL, kind: "image", alt: "A line that rises", ...more },
  body: Buffer.from(body),
});
const done: Frame = { header: { type: "done", cell: CELL, status: "ok", diagnostics: {} }, body: new Uint8Array() };
const ended: Frame = { header: { type: "ended", cell: CELL, signal: 9 }, body: new Uint8Array() };

function* repeat(times: number, ...frames: Frame[]): Generator<Frame> {
  for (let at = 0; at < times; at += 1) yield* frames;
}

interface Attack {
  readonly ran: ExecutedCell;
  /** Bytes that the host read before it interrupted the cell. */
  readonly readBytes: number;
  readonly sent: string[];
}

/** Runs a cell in a sandbox whose worker sends these frames whatever it is asked, until it is interrupted. */
async function attack(
  frames: Iterable<Frame>,
  more: { rollback?: "fork" | "none"; turnArtifacts?: { bytes: number } } = {},
): Promise<Attack> {
  const sending = frames[Symbol.iterator]();
  const death = Promise.withResolvers<Death>();
  const sent: string[] = [];
  let readBytes = 0;
  let isOver = false;
  const receive = async (): Promise<Frame | null> => {
    if (isOver) return sent.includes("closed") ? null : ended;
    const { value, done: isLast } = sending.next();
    if (isLast === true) return done;
    readBytes += value.body.length;
    return value;
  };
  const close = async (): Promise<void> => {
    isOver = true;
    sent.push("closed");
    death.resolve({ cause: "closed", detail: "closed" });
  };
  const lease: Lease = {
    ...{ id: "lease", driver: "bubblewrap", start: "forked" },
    channel: {
      send: async ({ type }) => {
        sent.push(type);
        isOver ||= type === "interrupt";
      },
      receive,
      close: () => {},
    },
    died: death.promise,
    usage: async () => usage,
    resetPeak: async () => usage,
    close,
    [Symbol.asyncDispose]: close,
  };
  const request = { cell: CELL, code: new Uint8Array(), names: {}, expect: null, limits: defaultLimits, artifactChecker };
  const ran = await runCell({ ...request, rollback: "fork", lease, ...more });
  return { ran, readBytes, sent };
}

test.each<{
  what: string;
  frames: () => Iterable<Frame>;
  name: keyof typeof defaultLimits;
  atMost: number;
  turnArtifacts?: { bytes: number };
}>([
  { what: "figure data of 55 MB", frames: () => [...repeat(74, chunk("data")), artifact()], name: "artifactDataBytes", atMost: 3 * MB },
  { what: "a picture of 55 MB", frames: () => [...repeat(74, chunk("image")), artifact()], name: "artifactBytes", atMost: 11 * MB },
  { what: "chunks without end", frames: () => repeat(Infinity, chunk("image")), name: "artifactBytes", atMost: 11 * MB },
  {
    what: "20 pictures of 9 MB",
    frames: () => repeat(20, ...repeat(12, chunk("image")), artifact()),
    name: "cellArtifactBytes",
    atMost: 65 * MB,
  },
  {
    what: "pictures after other cells of the turn",
    frames: () => repeat(20, ...repeat(12, chunk("image")), artifact()),
    name: "turnArtifactBytes",
    turnArtifacts: { bytes: 250 * MB },
    atMost: 7 * MB,
  },
  { what: "artifacts without end", frames: () => repeat(Infinity, artifact({}, "{}")), name: "artifacts", atMost: 1000 },
  { what: "a result of 55 MB", frames: () => repeat(74, chunk("result")), name: "resultBytes", atMost: 11 * MB },
])("$what end only that cell, and name the limit $name", async ({ frames, name, atMost, turnArtifacts }) => {
  const { ran, readBytes, sent } = await attack(frames(), turnArtifacts && { turnArtifacts });
  expect(ran).toMatchObject({
    status: "output_limit",
    resultJson: null,
    artifacts: [],
    error: { type: "OutputLimit", limit: { name, allowed: defaultLimits[name], seen: expect.any(Number) } },
    leaseUsable: true,
  });
  expect(ran.error!.limit!.seen).toBeGreaterThan(defaultLimits[name]);
  expect(ran.error!.message).toContain(String(defaultLimits[name]));
  expect(readBytes).toBeLessThan(atMost);
  expect(sent).toEqual(["cell", "interrupt"]);
});

test("the last part of a result counts, and the cell is rolled back although it says that it succeeded", async () => {
  const large: Frame = { ...done, body: new Uint8Array(700_000) };
  const { ran, sent } = await attack([...repeat(13, chunk("result")), large]);
  expect(ran).toMatchObject({
    status: "output_limit",
    error: { limit: { name: "resultBytes", seen: 13 * part.length + 700_000 } },
    leaseUsable: true,
  });
  expect(sent).toEqual(["cell", "rollback"]);
});

test("where a cell cannot be undone, its sandbox is closed at once", async () => {
  const { ran, sent } = await attack(repeat(Infinity, chunk("data")), { rollback: "none" });
  expect(ran).toMatchObject({ status: "output_limit", error: { limit: { name: "artifactDataBytes" } }, leaseUsable: false });
  expect(sent.slice(0, 2)).toEqual(["cell", "closed"]);
});

test.each([
  { what: "of an unknown content", frame: chunk("program") },
  { what: "of a tool call", frame: chunk("params") },
])("chunks $what are not kept", async ({ frame }) => {
  const { ran, readBytes } = await attack(repeat(Infinity, frame));
  expect(ran).toMatchObject({
    status: "sandbox_lost",
    error: { message: 'The sandbox is gone: it sent an unexpected frame of type "chunk".' },
  });
  expect(readBytes).toBe(part.length);
});

test("what the cells of a turn sent counts for its next cell", async () => {
  const turnArtifacts = { bytes: 0 };
  await attack([chunk("image"), artifact({}, "{}")], { turnArtifacts });
  expect(turnArtifacts.bytes).toBe(part.length + 2);
});
