import { expect, it } from "vitest";
import { reserveOuterId } from "./outer-id.ts";

it("gives each sandbox an id of its own, uses released ids last, and names the limit when there are none left", () => {
  const first = Array.from({ length: 10 }, reserveOuterId);
  for (const reserved of first) reserved.release();
  const all = Array.from({ length: 511 }, reserveOuterId);
  const ids = all.map(({ id }) => id);
  expect(new Set(ids).size).toBe(511);
  expect(Math.min(...ids)).toBeGreaterThanOrEqual(2 ** 31);
  expect(Math.max(...ids)).toBeLessThan(2 ** 32 - 1);
  expect(Math.max(...ids) - Math.min(...ids)).toBe(510);
  expect(ids.slice(-10)).toEqual(first.map(({ id }) => id));
  expect(reserveOuterId).toThrow(
    "A bubblewrap sandbox could not be opened. All 511 user ids that one process has for its sandboxes are in use.",
  );
  all[7]!.release();
  expect(reserveOuterId().id).toBe(ids[7]);
});
