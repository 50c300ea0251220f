import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listChanges, formatFileList, listFiles } from "./file-list.ts";

describe("file list", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), "sluice-file-list-"));
    await mkdir(path.join(root, "usr"));
    await writeFile(path.join(root, "usr", "data"), "abc", { mode: 0o644 });
    await symlink("data", path.join(root, "usr", "link"));
  });

  afterEach(async () => await rm(root, { recursive: true }));

  it("contains every entry in a fixed order with kind, mode, size and content", async () => {
    const lines = formatFileList(await listFiles(root)).split("\n");
    expect(lines.map((line) => line.split("\t").toSpliced(1, 1))).toEqual([
      ["directory", "0", "", "usr"],
      ["file", "3", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "usr/data"],
      ["link", "0", "data", "usr/link"],
      [""],
    ]);
  });

  it.each([
    ["a changed byte of the same size", async () => await writeFile(path.join(root, "usr", "data"), "abd"), "usr/data"],
    ["a changed mode", async () => await chmod(path.join(root, "usr", "data"), 0o666), "usr/data"],
    ["an added file", async () => await writeFile(path.join(root, "usr", "more"), ""), "usr/more"],
    ["a removed file", async () => await rm(path.join(root, "usr", "link")), "usr/link"],
  ])("shows %s", async (_title, damage, name) => {
    const recorded = formatFileList(await listFiles(root));
    expect(listChanges(recorded, await listFiles(root))).toEqual([]);
    await damage();
    expect(listChanges(recorded, await listFiles(root))).toEqual([`${name} was changed after the build`]);
  });
});
