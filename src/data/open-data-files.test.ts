import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UsageError } from "../errors/sluice-error.ts";
import { openDataFiles } from "./open-data-files.ts";

describe("openDataFiles", () => {
  let root: string;
  let given: string;
  let outside: string;

  beforeEach(() => {
    root = mkdtempSync(path.join(os.tmpdir(), "sluice-data-"));
    given = path.join(root, "given");
    outside = path.join(root, "outside");
    mkdirSync(given);
    mkdirSync(outside);
    writeFileSync(path.join(outside, "secret.csv"), "a\n1\n");
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const write = (name: string, text = "a\n1\n"): string => {
    const file = path.join(given, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  const makePipe = (file: string): unknown => execFileSync("/bin/sh", ["-c", 'mkfifo "$1"', "sh", file]);
  const failure = (use: () => unknown): unknown => {
    try {
      return use();
    } catch (error) {
      return error instanceof UsageError ? [error.code, error.message.replace(root, "ROOT")] : error;
    }
  };

  test("finds the data files of a folder in order, and reports what it left out", async () => {
    for (const name of ["b.CSV", "a.json", "deep/er/c.parquet", "notes.md", "photo.png", ".hidden.csv"]) write(name);
    const files = await openDataFiles({ paths: [given] });
    expect(files.files().map(({ stem, format, path: shown }) => [stem, format, shown.replace(root, "ROOT")])).toEqual([
      ["a", "json", "ROOT/given/a.json"],
      ["b", "csv", "ROOT/given/b.CSV"],
      ["c", "parquet", "ROOT/given/deep/er/c.parquet"],
    ]);
    expect(files.leftOut()).toEqual([
      { path: given, why: "2 file(s) that are not data: .md, .png" },
      { path: given, why: "1 hidden file(s) or folder(s)" },
    ]);
  });

  test("follows links inside the given folder, and leaves out links that point outside", async () => {
    write("real.csv");
    symlinkSync(path.join(outside, "secret.csv"), path.join(given, "leak.csv"));
    symlinkSync(outside, path.join(given, "folder.csv"));
    symlinkSync("real.csv", path.join(given, "twin.csv"));
    symlinkSync("nothing.csv", path.join(given, "dangling.csv"));
    symlinkSync("/etc/passwd", path.join(given, "passwd.txt"));
    makePipe(path.join(given, "pipe.csv"));
    const files = await openDataFiles({ paths: [given] });
    expect(files.files().map(({ stem }) => stem)).toEqual(["real"]);
    expect(files.leftOut().map(({ path: shown, why }) => [path.basename(shown), why])).toEqual([
      ["dangling.csv", "it is a broken symbolic link"],
      ["folder.csv", "it is a symbolic link that points outside the given folder"],
      ["leak.csv", "it is a symbolic link that points outside the given folder"],
      ["passwd.txt", "it is a symbolic link that points outside the given folder"],
      ["pipe.csv", "it is not a regular file"],
      ["twin.csv", `it is the same file as ${path.join(given, "real.csv")}`],
    ]);
  });

  test("refuses a file that was replaced by a link, or whose folder was", async () => {
    const file = write("sales.csv");
    write("below/costs.csv");
    const [costs, sales] = (await openDataFiles({ paths: [given] })).files();
    expect(Buffer.from(sales!.content.read()).toString()).toBe("a\n1\n");
    rmSync(file);
    symlinkSync(path.join(outside, "secret.csv"), file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_REFUSED",
      "Refusing to read the file ROOT/given/sales.csv: it was replaced by a symbolic link.",
    ]);
    writeFileSync(path.join(outside, "costs.csv"), "secret\n");
    renameSync(path.join(given, "below"), path.join(given, "was"));
    symlinkSync(outside, path.join(given, "below"));
    expect(failure(() => costs!.content.version())).toEqual([
      "DATA_FILE_REFUSED",
      "Refusing to read the file ROOT/given/below/costs.csv: a folder above it was replaced by a symbolic link.",
    ]);
    rmSync(file);
    makePipe(file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_REFUSED",
      "Refusing to read the file ROOT/given/sales.csv: it is no longer a regular file.",
    ]);
    rmSync(file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_GONE",
      "Cannot read the file ROOT/given/sales.csv: it no longer exists.",
    ]);
  });

  test("notices changed files at once, and new files after a refresh", async () => {
    const file = write("sales.csv");
    const files = await openDataFiles({ paths: [given] });
    const { content } = files.files()[0]!;
    const first = content.version();
    expect([content.version(), content.bytes]).toEqual([first, 4]);
    writeFileSync(file, "a\n1\n2\n");
    expect(content.version()).not.toBe(first);
    expect([content.bytes, Buffer.from(content.read()).toString()]).toEqual([6, "a\n1\n2\n"]);
    const beside = write("new.part", "a\n3\n");
    renameSync(beside, file); // the way editors save
    expect(Buffer.from(content.read()).toString()).toBe("a\n3\n");
    write("another.csv");
    await files.refresh();
    expect(files.files().map(({ stem }) => stem)).toEqual(["sales", "another"]);
    expect(files.files()[0]!.content).toBe(content);
  });

  test("accepts any file name and shows it in a printable form", async () => {
    const long = `${"x".repeat(240)}.csv`;
    for (const name of ["line\nbreak.csv", "..csv", "...csv", "quo\"te'.csv", "esc\u001b[31m.csv", long]) write(name);
    const raw = Buffer.concat([Buffer.from(`${given}/`), Buffer.from([0xff, 0xfe, 0x80]), Buffer.from(".csv")]);
    writeFileSync(raw, "a\n7\n");
    const files = await openDataFiles({ paths: [given] });
    const shown = files.files().map((file) => path.basename(file.path));
    expect(shown).toEqual(["esc\\u{1b}[31m.csv", "line\\u{a}break.csv", "quo\"te'.csv", long, "\uFFFD\uFFFD\uFFFD.csv"]);
    expect(Buffer.from(files.files().at(-1)!.content.read()).toString()).toBe("a\n7\n");
  });

  test("limits count and depth, and reports the rest", async () => {
    for (let at = 0; at < 5; at += 1) write(`f${at}.csv`);
    write("one/two/three/deep.csv");
    const files = await openDataFiles({ paths: [given], bounds: { maxFiles: 3, maxDepth: 1 } });
    expect(files.files().map(({ stem }) => stem)).toEqual(["f0", "f1", "f2"]);
    expect(files.leftOut()).toEqual([
      { path: path.join(given, "one/two"), why: "it is more than 1 folders deep" },
      { path: given, why: "2 file(s) over the limit of 3: give a smaller folder, or single files" },
    ]);
  });

  test("rejects a path that does not exist or is not data", async () => {
    const reject = async (paths: string[]): Promise<unknown> =>
      await openDataFiles({ paths }).catch((error: unknown) =>
        failure(() => {
          throw error;
        }),
      );
    expect(await reject([path.join(root, "none.csv")])).toEqual([
      "DATA_PATH_MISSING",
      "Cannot use ROOT/none.csv as data: no such file or folder.",
    ]);
    expect(await reject([write("notes.md")])).toEqual([
      "DATA_PATH_REFUSED",
      "Cannot use ROOT/given/notes.md as data: its extension is not one of .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .txt.",
    ]);
    expect(await reject(["/dev/null"])).toEqual(["DATA_PATH_REFUSED", "Cannot use /dev/null as data: it is neither a file nor a folder."]);
  });

  test("refuses to read a file that is larger than a sandbox accepts", async () => {
    const file = write("large.csv", "a\n".repeat(50));
    const [large] = (await openDataFiles({ paths: [file], maxFileBytes: 99 })).files();
    expect(failure(() => large!.content.read())).toEqual([
      "INPUT_TOO_LARGE",
      "The file ROOT/given/large.csv has 100 bytes; a sandbox accepts at most 99 bytes of inputs.",
    ]);
  });
});
