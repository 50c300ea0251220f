import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors/sluice-error.ts";
import { defaultLimits } from "../../sandbox/limits.ts";
import { parseRunArguments } from "./run.ts";

describe("the arguments of sluice run", () => {
  test("have the defaults of the limits and of the output", () => {
    expect(parseRunArguments(["a.py"])).toEqual({
      script: "a.py",
      inputs: [],
      driver: "auto",
      limits: defaultLimits,
      out: "sluice-out",
      json: false,
      quiet: false,
    });
  });

  test("set what they name, and the sandbox lives as long as its cell may", () => {
    const args = [
      "-",
      "--timeout-s",
      "1800",
      "--memory-mb=512.5",
      "--expect",
      "chart, image",
      "--input",
      "größe=a=b.csv",
      "--driver",
      "bubblewrap",
    ];
    expect(parseRunArguments(args)).toMatchObject({
      inputs: [["größe", "a=b.csv"]],
      expect: ["chart", "image"],
      driver: "bubblewrap",
      limits: { ...defaultLimits, cellTimeoutMs: 1_800_000, leaseTimeoutMs: 1_860_000, memoryBytes: 537_395_200 },
    });
    expect(parseRunArguments(["-", "--timeout-s=.5"]).limits).toEqual({ ...defaultLimits, cellTimeoutMs: 500 });
  });

  test.each([
    [["--input", "pd=a.csv"], "--input pd: this is a preloaded name; choose another alias, like pd_1."],
    [["--input", "class=a.csv"], "--input class: this is a Python keyword; choose another alias, like class_1."],
    [["--input", "set_result=a.csv"], "--input set_result: this is a helper; choose another alias, like set_result_1."],
    [["--input", "print=a.csv"], "--input print: this is a Python builtin; choose another alias, like print_1."],
    [["--input", "a=a.csv", "--input", "a=b.csv"], "--input a was given twice."],
    [["--input", "a="], "--input a= is not ALIAS=FILE."],
    [["--timeout-s", "1e3"], "--timeout-s 1e3 is not a positive number."],
    [["--timeout-s", "0"], "--timeout-s 0 is not a positive number."],
    [["--timeout-s", "2147484"], "--timeout-s 2147484 is too long, at most 2147483."],
    [["--memory-mb", "63"], "--memory-mb 63 is too little, at least 64."],
    [["--expect", ","], "--expect needs image, chart or both."],
    [["--out="], "--out needs a directory."],
  ])("refuse %j", (args, message) => {
    expect(() => parseRunArguments(["-", ...args])).toThrow(
      new UsageError({ code: "WRONG_USAGE", message, hint: "sluice run --help shows how it is called." }),
    );
  });
});
