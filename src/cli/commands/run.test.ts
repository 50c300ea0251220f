import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../../errors/sluice-error.ts";
import { defaultLimits } from "../../sandbox/limits.ts";
import { parseRunArguments, readInput, readScriptFile } from "./run.ts";

describe("parseRunArguments", () => {
  test("returns the defaults", () => {
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

  test("sets limits, and lets the sandbox live longer than its cell", () => {
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
    [["--input", "pd=a.csv"], "--input pd: the alias is a preloaded name. Choose another one, such as pd_1."],
    [["--input", "class=a.csv"], "--input class: the alias is a Python keyword. Choose another one, such as class_1."],
    [["--input", "set_result=a.csv"], "--input set_result: the alias is a helper. Choose another one, such as set_result_1."],
    [["--input", "print=a.csv"], "--input print: the alias is a Python builtin. Choose another one, such as print_1."],
    [["--input", "a=a.csv", "--input", "a=b.csv"], "--input a is given twice."],
    [["--input", "a="], "--input must be ALIAS=FILE, not a=."],
    [["--timeout-s", "1e3"], "--timeout-s must be a positive number, not 1e3."],
    [["--timeout-s", "0"], "--timeout-s must be a positive number, not 0."],
    [["--timeout-s", "2147484"], "--timeout-s must be at most 2147483, not 2147484."],
    [["--memory-mb", "63"], "--memory-mb must be at least 64, not 63."],
    [["--expect", ","], "--expect must be image, chart or both."],
    [["--out="], "--out needs a directory."],
  ])("refuses %j", (args, message) => {
    expect(() => parseRunArguments(["-", ...args])).toThrow(
      new UsageError({ code: "WRONG_USAGE", message, hint: "Run sluice run --help for usage." }),
    );
  });
});

describe("files of sluice run", () => {
  const { signal } = new AbortController();
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "sluice-files-"));
  });
  afterAll(async () => await rm(directory, { recursive: true }));

  async function file(name: string, content: string | Uint8Array): Promise<string> {
    await writeFile(path.join(directory, name), content);
    return path.join(directory, name);
  }

  test("a script may start with a byte order mark, as in Python", async () => {
    expect(await readScriptFile(await file("bom.py", "\uFEFFprint(1)\r\n"), signal)).toBe("print(1)\r\n");
  });

  test("a script that is not UTF-8 is refused", async () => {
    const script = await file("latin.py", new Uint8Array([0x78, 0xe9]));
    await expect(readScriptFile(script, signal)).rejects.toMatchObject({
      code: "SCRIPT_NOT_TEXT",
      message: `The script ${script} is not UTF-8 text.`,
    });
  });

  test("the extension of an input decides its format", async () => {
    const name = await file("we ird=$(touch x);\n'\".CSV", "a\n1\n");
    expect(await readInput("a", name, signal)).toMatchObject({ format: "csv", bytes: Buffer.from("a\n1\n") });
    await expect(readInput("a", "data.xml", signal)).rejects.toThrow(
      "--input a=data.xml: supported extensions are .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .txt.",
    );
  });

  test("a file that cannot be read gives the reason", async () => {
    const missing = path.join(directory, "none.csv");
    await expect(readInput("a", missing, signal)).rejects.toThrow(`Cannot read the input a from ${missing}: no such file.`);
    await expect(readScriptFile(directory, signal)).rejects.toThrow(`Cannot read the script from ${directory}: it is a directory.`);
    await expect(readInput("a", missing, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  });
});
