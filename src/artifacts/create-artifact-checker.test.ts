import { afterAll, describe, expect, test } from "vitest";
import { countLoopIterations } from "../../test/fixtures/event-loop.ts";
import { createArtifactChecker } from "./create-artifact-checker.ts";

const checker = createArtifactChecker();
afterAll(() => checker[Symbol.asyncDispose]());

const judge = (kind: "figure" | "chart", value: unknown): Promise<string | null> =>
  checker.checkJson(kind, Buffer.from(typeof value === "string" ? value : JSON.stringify(value)));

/** Large JSON is checked in a thread, small JSON at once; both give the same result. */
describe.each([3, 100_000])("the JSON of a figure with %i points and of a chart of the same size", (points) => {
  const numbers = Array.from({ length: points }, (_, index) => index);
  const axes = { xScale: "linear", yScale: "linear", series: [{ type: "line", x: numbers, y: numbers }], unread: [] };
  const columns = Array.from({ length: Math.ceil(points / 3) / 1000 + 1 }, (_, index) => `c${index}`);
  const rows = Array.from({ length: Math.min(points, 3000) }, (_, x) => ({ x, ...Object.fromEntries(columns.map((name) => [name, x])) }));
  const spec = { type: "line", xKey: "x", series: [{ key: "c0" }] };

  test("is accepted when it is valid", async () => {
    expect([await judge("figure", { axes: [axes] }), await judge("chart", { spec, data: rows })]).toEqual([null, null]);
  });

  test("is rejected when it is invalid, with the place if it is known", async () => {
    const uneven = { ...axes, series: [{ type: "line", x: numbers, y: numbers.slice(1) }] };
    expect([
      await judge("figure", { axes: [uneven] }),
      await judge("figure", { axes: [{ ...axes, extra: 1 }] }),
      await judge("figure", `${JSON.stringify({ axes: [axes] })}]`),
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

const figureOf = (points: number): Buffer => {
  const numbers = Array.from({ length: points }, (_, index) => index / 7);
  const axes = [{ xScale: "linear", yScale: "linear", series: [{ type: "line", x: numbers, y: numbers }], unread: [] }];
  return Buffer.from(JSON.stringify({ axes }));
};

test("the event loop keeps running while large JSON is checked", async () => {
  const { value, iterations } = await countLoopIterations(() => checker.checkJson("figure", figureOf(300_000)));
  expect(value).toBeNull();
  expect(iterations).toBeGreaterThan(2);
});

test("JSON that exhausts the memory is rejected, and the checks behind it still run", async () => {
  const deadly = Buffer.from(`{"axes":[${"{},".repeat(3_000_000)}{}]}`);
  const large = figureOf(20_000);
  expect(await Promise.all([deadly, large].map((json) => checker.checkJson("figure", json)))).toEqual([
    `a figure of ${deadly.length} bytes is too large to be checked`,
    null,
  ]);
});
