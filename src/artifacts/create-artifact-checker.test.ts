import { afterAll, describe, expect, test } from "vitest";
import { countLoopIterations } from "../../test/fixtures/event-loop.ts";
import { runAsTenant } from "../concurrency/tenant.ts";
import { createArtifactChecker } from "./create-artifact-checker.ts";
import { lines, png } from "./fixtures/create-png.ts";

const checker = createArtifactChecker();
afterAll(() => checker[Symbol.asyncDispose]());

const judge = (kind: "figure" | "chart", value: unknown): Promise<string | null> =>
  checker.checkJson(kind, Buffer.from(typeof value === "string" ? value : JSON.stringify(value)));

const axesOf = (numbers: readonly unknown[]) => {
  const axis = { scale: "linear" };
  return { x: axis, y: axis, series: [{ type: "line", x: numbers, y: numbers }], unread: [] };
};

/** Large JSON is checked in the process, small JSON at once; both give the same result. */
describe.each([3, 100_000])("the JSON of a figure with %i points and of a chart of the same size", (points) => {
  const numbers = Array.from({ length: points }, (_, index) => index);
  const axes = axesOf(numbers);
  const columns = Array.from({ length: Math.ceil(points / 3) / 1000 + 1 }, (_, index) => `c${index}`);
  const rows = Array.from({ length: Math.min(points, 3000) }, (_, x) => ({ x, ...Object.fromEntries(columns.map((name) => [name, x])) }));
  const spec = { type: "line", xKey: "x", series: [{ key: "c0" }] };

  test("is accepted when it is valid", async () => {
    expect([await judge("figure", { schemaVersion: 2, axes: [axes] }), await judge("chart", { spec, data: rows })]).toEqual([null, null]);
  });

  test("is rejected when it is invalid, with the place if it is known", async () => {
    const uneven = { ...axes, series: [{ type: "line", x: numbers, y: numbers.slice(1) }] };
    expect([
      await judge("figure", { schemaVersion: 2, axes: [uneven] }),
      await judge("figure", { schemaVersion: 2, axes: [{ ...axes, extra: 1 }] }),
      await judge("figure", `${JSON.stringify({ schemaVersion: 2, axes: [axes] })}]`),
      await judge("chart", { spec, data: rows.map((row) => ({ ...row, c0: [1] })) }),
      await judge("chart", { spec: { ...spec, series: [{ key: "n" }] }, data: rows.map(({ x }) => ({ x, filler: "f".repeat(200) })) }),
    ]).toEqual([
      "the data behind an image does not match the schema",
      "the data behind an image does not match the schema",
      "the data behind an image does not match the schema",
      "the spec or the rows of a chart do not match the schema",
      "a chart is wrong at series[0].key: n is not in the data; the columns are x, filler",
    ]);
  });
});

const figureWith = (values: readonly unknown[]): string => JSON.stringify({ schemaVersion: 2, axes: [axesOf(values)] });

const figureOf = (points: number): Buffer => {
  const numbers = Array.from({ length: points }, (_, index) => index / 7);
  return Buffer.from(figureWith(numbers));
};

test("the event loop keeps running while large JSON is checked", async () => {
  const { value, iterations } = await countLoopIterations(() => checker.checkJson("figure", figureOf(300_000)));
  expect(value).toBeNull();
  expect(iterations).toBeGreaterThan(2);
});

test("JSON that exhausts the memory is rejected, and the checks behind it still run", async () => {
  const deadly = Buffer.from(`{"axes":[${"[[]],".repeat(6_000_000)}[]]}`);
  const large = figureOf(20_000);
  expect(await Promise.all([deadly, large].map((json) => checker.checkJson("figure", json)))).toEqual([
    `a figure of ${deadly.length} bytes is too large to be checked`,
    null,
  ]);
});

/** Two megabytes each. Reporting every problem of one would take seconds and all the memory of the process. */
const hostile: Readonly<Record<string, ["figure" | "chart", string]>> = {
  "a list of empty axes": ["figure", `{"schemaVersion":2,"axes":[${"{},".repeat(690_000)}{}]}`],
  "wrong values": ["figure", figureWith(Array.from({ length: 200_000 }, () => true))],
  "wrong summaries": ["figure", figureWith(Array.from({ length: 300_000 }, () => []))],
  "unknown keys": ["figure", `{"schemaVersion":2,${Array.from({ length: 150_000 }, (_, index) => `"k${index}":0`).join(",")}}`],
  "deep nesting": ["figure", `{"schemaVersion":2,"axes":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`],
  "empty rows": ["chart", `{"spec":{"type":"line","xKey":"x","series":[]},"data":[${"{},".repeat(690_000)}{}]}`],
  "wrong cells": ["chart", `{"spec":{},"data":[{${Array.from({ length: 150_000 }, (_, index) => `"k${index}":[]`).join(",")}}]}`],
};

test.each(Object.entries(hostile))("hostile JSON with %s is rejected in the same process", async (_, [kind, json]) => {
  await checker.checkPng(Buffer.alloc(0));
  const { pid } = checker;
  const subject = kind === "figure" ? "the data behind an image does" : "the spec or the rows of a chart do";
  expect(await judge(kind, json)).toBe(`${subject} not match the schema`);
  expect(checker.pid).toBe(pid);
});

test("a PNG is decoded in the process, which goes on after it rejected one", async () => {
  const good = png({ width: 40, height: 30, lines: lines(40, 30, (x) => x) });
  expect(await Promise.all([checker.checkPng(good), checker.checkPng(Buffer.from("x")), checker.checkPng(good)])).toEqual([
    { ok: true, width: 40, height: 30 },
    { ok: false, why: "is not a PNG" },
    { ok: true, width: 40, height: 30 },
  ]);
  expect(await checker.checkPng(png({ width: 4, height: 4, lines: lines(4, 4, () => 9) }))).toEqual({
    ok: false,
    why: "is blank: nothing visible was drawn",
  });
});

test("the largest picture that is allowed can be decoded", async () => {
  const [width, height] = [10_000, 5_000];
  const half = png({ width, height, lines: lines(width, height, (x) => (x < 5_000 ? 0 : 255)) });
  expect(await checker.checkPng(half)).toEqual({ ok: true, width, height });
});

test("the pictures of one tenant delay a neighbour's figure by one picture at most", async () => {
  const large = png({ width: 2_000, height: 2_000, lines: lines(2_000, 2_000, (x) => x) });
  const decoded: unknown[] = [];
  const greedy = Array.from({ length: 19 }, () =>
    runAsTenant("greedy", () => checker.checkPng(large).then((found) => decoded.push(found))),
  );
  expect(await runAsTenant("neighbour", () => checker.checkJson("figure", figureOf(20_000)))).toBeNull();
  expect(decoded.length).toBeLessThanOrEqual(1);
  await Promise.all(greedy);
  expect(decoded).toEqual(Array.from({ length: 19 }, () => ({ ok: true, width: 2_000, height: 2_000 })));
});

test("when the process is killed, one artifact is rejected and the others are checked", async () => {
  const picture = png({ width: 3_000, height: 3_000, lines: lines(3_000, 3_000, (x) => x) });
  const checks = [1, 2, 3].map((tenant) => runAsTenant(String(tenant), () => checker.checkPng(picture)));
  process.kill(checker.pid!, "SIGKILL");
  expect(await Promise.all(checks)).toEqual([
    { ok: false, why: "is a PNG that cannot be decoded" },
    { ok: true, width: 3_000, height: 3_000 },
    { ok: true, width: 3_000, height: 3_000 },
  ]);
});

test("an aborted caller gives up its turn", async () => {
  const picture = png({ width: 3_000, height: 3_000, lines: lines(3_000, 3_000, (x) => x) });
  const stop = new AbortController();
  const running = checker.checkPng(picture);
  const waiting = checker.checkPng(picture, stop.signal);
  stop.abort();
  expect(await waiting).toMatchObject({ ok: false });
  expect(await running).toMatchObject({ ok: true });
});
