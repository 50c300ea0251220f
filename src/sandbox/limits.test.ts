import { totalmem } from "node:os";
import { describe, expect, test } from "vitest";
import { defaultLimits, defaultMaxSandboxes, withLimits } from "./limits.ts";

const GB = 1024 ** 3;

describe("limits", () => {
  test("have the documented defaults", () => {
    expect(defaultLimits).toEqual({
      cellTimeoutMs: 60_000,
      leaseTimeoutMs: 900_000,
      memoryBytes: 2 * 1024 ** 3,
      processes: 64,
      scratchBytes: 512 * 1024 ** 2,
      openFiles: 1024,
      codeBytes: 256 * 1024,
      stdoutBytes: 1024 ** 2,
      stderrBytes: 1024 ** 2,
      resultBytes: 10 * 1024 ** 2,
      artifacts: 20,
      artifactBytes: 10 * 1024 ** 2,
      artifactDataBytes: 2 * 1024 ** 2,
      cellArtifactBytes: 64 * 1024 ** 2,
      turnArtifactBytes: 256 * 1024 ** 2,
      inputBytes: 256 * 1024 ** 2,
    });
  });

  test("can be set one by one", () => {
    for (const name of Object.keys(defaultLimits)) expect(withLimits({ [name]: 7 })).toEqual({ ...defaultLimits, [name]: 7 });
  });

  test.each([
    [{ cellTimeoutMs: 2 ** 31 }, "The limit cellTimeoutMs is 2147483648. It must be a whole number from 1 to 2147483647."],
    [{ memoryBytes: Number.NaN }, "The limit memoryBytes is NaN. It must be a whole number from 1 to 9007199254740991."],
    [{ processes: 0 }, "The limit processes is 0. It must be a whole number from 1 to 9007199254740991."],
    [{ artifacts: -1 }, "The limit artifacts is -1. It must be a whole number from 0 to 9007199254740991."],
    [{ cellTimeoutMs: undefined }, "The limit cellTimeoutMs is undefined. It must be a whole number from 1 to 2147483647."],
    [{ scratchBytes: 1.5 }, "The limit scratchBytes is 1.5. It must be a whole number from 1 to 9007199254740991."],
  ])("refuse %j", (changes, message) => {
    expect(() => withLimits(changes)).toThrow(expect.objectContaining({ code: "WRONG_LIMIT", message }));
  });
});

describe("the default number of sandboxes", () => {
  test.each([
    { machine: "64 GB", bytes: 64 * GB, memoryBytes: 2 * GB, places: 24 },
    { machine: "8 GB", bytes: 8 * GB, memoryBytes: 2 * GB, places: 3 },
    { machine: "8 GB and small sandboxes", bytes: 8 * GB, memoryBytes: GB / 2, places: 12 },
    { machine: "1 GB", bytes: GB, memoryBytes: 2 * GB, places: 2 },
  ])("is $places on a machine with $machine", ({ bytes, memoryBytes, places }) => {
    expect(defaultMaxSandboxes(withLimits({ memoryBytes }), bytes)).toBe(places);
  });

  test("depends on the memory of this machine", () => {
    const places = defaultMaxSandboxes(defaultLimits);
    expect(places).toBeGreaterThanOrEqual(2);
    expect(places).toBeLessThanOrEqual(Math.max(2, (0.75 * totalmem()) / defaultLimits.memoryBytes));
  });
});
