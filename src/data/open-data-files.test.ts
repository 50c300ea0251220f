import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UsageError } from "../errors/sluice-error.ts";
import { openDataFiles } from "./open-data-files.ts";

describe("files that are given as data", () => {
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

  test("are those of a folder, in order, with what was left out", async () => {
    for (const name of ["b.CSV", "a.json", "deep/er/c.parquet", "notes.md", "photo.png", ".hidden.csv"]) write(name);
    const files = await openDataFiles({ paths: [given] });
    expect(files.files().map(({ stem, format, path: shown }) => [stem, format, shown.replace(root, "ROOT")])).toEqual([
      ["a", "json", "ROOT/given/a.json"],
      ["b", "csv", "ROOT/given/b.CSV"],
      ["c", "parquet", "ROOT/given/deep/er/c.parquet"],
    ]);
    expect(files.leftOut()).toEqual([
      { path: given, why: "2 file(s) that are no data: .md, .png" },
      { path: given, why: "1 hidden file(s) or folder(s)" },
    ]);
  });

  test("stay inside of what was given: links out of it are left out by name, links inside are followed", async () => {
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
      ["dangling.csv", "it is a symbolic link to nothing"],
      ["folder.csv", "it is a symbolic link to a place outside of the given folder"],
      ["leak.csv", "it is a symbolic link to a place outside of the given folder"],
      ["passwd.txt", "it is a symbolic link to a place outside of the given folder"],
      ["pipe.csv", "it is no regular file"],
      ["twin.csv", `it is the same file as ${path.join(given, "real.csv")}`],
    ]);
  });

  test("are refused once a link has taken the place of the file, or of a folder above it", async () => {
    const file = write("sales.csv");
    write("below/costs.csv");
    const [costs, sales] = (await openDataFiles({ paths: [given] })).files();
    expect(Buffer.from(sales!.content.read()).toString()).toBe("a\n1\n");
    rmSync(file);
    symlinkSync(path.join(outside, "secret.csv"), file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_REFUSED",
      "The file ROOT/given/sales.csv is not read: a symbolic link has taken its place.",
    ]);
    writeFileSync(path.join(outside, "costs.csv"), "secret\n");
    renameSync(path.join(given, "below"), path.join(given, "was"));
    symlinkSync(outside, path.join(given, "below"));
    expect(failure(() => costs!.content.version())).toEqual([
      "DATA_FILE_REFUSED",
      "The file ROOT/given/below/costs.csv is not read: a folder above it was replaced by a symbolic link.",
    ]);
    rmSync(file);
    makePipe(file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_REFUSED",
      "The file ROOT/given/sales.csv is not read: it is no regular file any more.",
    ]);
    rmSync(file);
    expect(failure(() => sales!.content.read())).toEqual([
      "DATA_FILE_GONE",
      "The file ROOT/given/sales.csv cannot be read: it is not there any more.",
    ]);
  });

  test("are seen again when they change, and new ones when the folder is looked at again", async () => {
    const file = write("sales.csv");
    const files = await openDataFiles({ paths: [given] });
    const { content } = files.files()[0]!;
    const first = content.version();
    expect([content.version(), content.bytes]).toEqual([first, 4]);
    writeFileSync(file, "a\n1\n2\n");
    expect(content.version()).not.toBe(first);
    expect([content.bytes, Buffer.from(content.read()).toString()]).toEqual([6, "a\n1\n2\n"]);
    const beside = write("new.part", "a\n3\n");
    renameSync(beside, file); // as editors save
    expect(Buffer.from(content.read()).toString()).toBe("a\n3\n");
    write("another.csv");
    await files.refresh();
    expect(files.files().map(({ stem }) => stem)).toEqual(["sales", "another"]);
    expect(files.files()[0]!.content).toBe(content);
  });

  test("have names of any kind, which are shown in a form that does nothing", async () => {
    const long = `${"x".repeat(240)}.csv`;
    for (const name of ["line\nbreak.csv", "..csv", "...csv", "quo\"te'.csv", "esc\u001b[31m.csv", long]) write(name);
    const raw = Buffer.concat([Buffer.from(`${given}/`), Buffer.from([0xff, 0xfe, 0x80]), Buffer.from(".csv")]);
    writeFileSync(raw, "a\n7\n");
    const files = await openDataFiles({ paths: [given] });
    const shown = files.files().map((file) => path.basename(file.path));
    expect(shown).toEqual(["esc\\u{1b}[31m.csv", "line\\u{a}break.csv", "quo\"te'.csv", long, "\uFFFD\uFFFD\uFFFD.csv"]);
    expect(Buffer.from(files.files().at(-1)!.content.read()).toString()).toBe("a\n7\n");
  });

  test("are bounded in count and depth, and the rest is said", async () => {
    for (let at = 0; at < 5; at += 1) write(`f${at}.csv`);
    write("one/two/three/deep.csv");
    const files = await openDataFiles({ paths: [given], bounds: { maxFiles: 3, maxDepth: 1 } });
    expect(files.files().map(({ stem }) => stem)).toEqual(["f0", "f1", "f2"]);
    expect(files.leftOut()).toEqual([
      { path: path.join(given, "one/two"), why: "it is more than 1 folders deep" },
      { path: given, why: "2 file(s) past the first 3: give a smaller folder, or the files by name" },
    ]);
  });

  test("are refused before anything starts when a path is none, or no data", async () => {
    const reject = async (paths: string[]): Promise<unknown> =>
      await openDataFiles({ paths }).catch((error: unknown) =>
        failure(() => {
          throw error;
        }),
      );
    expect(await reject([path.join(root, "none.csv")])).toEqual([
      "DATA_PATH_MISSING",
      "The data ROOT/none.csv cannot be used: there is no such file or folder.",
    ]);
    expect(await reject([write("notes.md")])).toEqual([
      "DATA_PATH_REFUSED",
      "The data ROOT/given/notes.md cannot be used: its ending is not one of .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .txt.",
    ]);
    expect(await reject(["/dev/null"])).toEqual([
      "DATA_PATH_REFUSED",
      "The data /dev/null cannot be used: it is neither a file nor a folder.",
    ]);
  });

  test("are not read when they are larger than a sandbox takes", async () => {
    const file = write("large.csv", "a\n".repeat(50));
    const [large] = (await openDataFiles({ paths: [file], maxFileBytes: 99 })).files();
    expect(failure(() => large!.content.read())).toEqual([
      "INPUT_TOO_LARGE",
      "The file ROOT/given/large.csv has 100 bytes; a sandbox takes 99 bytes of inputs.",
    ]);
  });
});
