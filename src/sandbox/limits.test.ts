import { describe, expect, test } from "vitest";
import { defaultLimits, withLimits } from "./limits.ts";

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
      inputBytes: 256 * 1024 ** 2,
    });
  });

  test("can each be set", () => {
    for (const name of Object.keys(defaultLimits)) expect(withLimits({ [name]: 7 })).toEqual({ ...defaultLimits, [name]: 7 });
  });

  test.each([
    [{ cellTimeoutMs: 2 ** 31 }, "The limit cellTimeoutMs is 2147483648; it is a whole number from 1 to 2147483647."],
    [{ memoryBytes: Number.NaN }, "The limit memoryBytes is NaN; it is a whole number from 1 to 9007199254740991."],
    [{ processes: 0 }, "The limit processes is 0; it is a whole number from 1 to 9007199254740991."],
    [{ artifacts: -1 }, "The limit artifacts is -1; it is a whole number from 0 to 9007199254740991."],
    [{ cellTimeoutMs: undefined }, "The limit cellTimeoutMs is undefined; it is a whole number from 1 to 2147483647."],
    [{ scratchBytes: 1.5 }, "The limit scratchBytes is 1.5; it is a whole number from 1 to 9007199254740991."],
  ])("%j is refused before anything starts", (changes, message) => {
    expect(() => withLimits(changes)).toThrow(expect.objectContaining({ code: "WRONG_LIMIT", message }));
  });
});
