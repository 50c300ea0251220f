import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { defaultLimits, withLimits, defaultMaxSandboxes } from "./limits.ts";

const GB = 1024 ** 3;

test.each([
  { machine: "64 GB", bytes: 64 * GB, memoryBytes: 2 * GB, places: 24 },
  { machine: "8 GB", bytes: 8 * GB, memoryBytes: 2 * GB, places: 3 },
  { machine: "8 GB, small sandboxes", bytes: 8 * GB, memoryBytes: GB / 2, places: 12 },
  { machine: "1 GB", bytes: GB, memoryBytes: 2 * GB, places: 2 },
])("on a machine with $machine there are $places places", ({ bytes, memoryBytes, places }) => {
  expect(defaultMaxSandboxes(withLimits({ memoryBytes }), bytes)).toBe(places);
});

test("the memory is this machine's unless told", () => {
  const places = defaultMaxSandboxes(defaultLimits);
  expect(places).toBeGreaterThanOrEqual(2);
  expect(places).toBeLessThanOrEqual(Math.max(2, (0.75 * totalmem()) / defaultLimits.memoryBytes));
});
