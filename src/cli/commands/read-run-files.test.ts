import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readInput, readScript } from "./run.ts";

describe("the files of a run", () => {
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

  test("a script may begin with a byte order mark, as Python's own may", async () => {
    expect(await readScript(await file("bom.py", "\uFEFFprint(1)\r\n"), signal)).toBe("print(1)\r\n");
  });

  test("a script that is not UTF-8 is refused and not repaired", async () => {
    const script = await file("latin.py", new Uint8Array([0x78, 0xe9]));
    await expect(readScript(script, signal)).rejects.toMatchObject({
      code: "SCRIPT_NOT_TEXT",
      message: `The script ${script} is not UTF-8 text.`,
    });
  });

  test("an input is known by the end of its name, whatever else is in it", async () => {
    const name = await file("we ird=$(touch x);\n'\".CSV", "a\n1\n");
    expect(await readInput("a", name, signal)).toEqual({ format: "csv", bytes: Buffer.from("a\n1\n") });
    await expect(readInput("a", "data.xml", signal)).rejects.toThrow(
      "--input a=data.xml: known are .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .txt.",
    );
  });

  test("what cannot be read says why", async () => {
    const missing = path.join(directory, "none.csv");
    await expect(readInput("a", missing, signal)).rejects.toThrow(`The input a cannot be read from ${missing}: there is no such file.`);
    await expect(readScript(directory, signal)).rejects.toThrow(`The script cannot be read from ${directory}: it is a directory.`);
    await expect(readInput("a", missing, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  });
});
