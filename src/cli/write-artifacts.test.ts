import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CellArtifact } from "../protocol/outcome.ts";
import { checkWritable, writeArtifacts } from "./write-artifacts.ts";

const artifact = {
  kind: "image",
  alt: "../../etc/passwd and more",
  title: "../x",
  contentHash: "0123456789abcdef",
  bytes: Buffer.from("png"),
  width: 1,
  height: 1,
} as unknown as CellArtifact;

describe("the output directory", () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(path.join(tmpdir(), "sluice-out-"));
  });
  afterEach(async () => await rm(home, { recursive: true }));

  test("is created with its parents when there is an artifact, and its file names do not come from the sandbox", async () => {
    const directory = path.join(home, "a", "b");
    await checkWritable(directory);
    expect(await readdir(home)).toEqual([]);
    const file = path.join(directory, "image-1-01234567.png");
    expect(await writeArtifacts([artifact], directory)).toEqual([{ artifact, file, url: pathToFileURL(file).href }]);
    expect(await readFile(file, "utf8")).toBe("png");
  });

  test("is checked before the cell runs", async () => {
    const file = path.join(home, "file");
    await writeFile(file, "");
    await expect(checkWritable(file)).rejects.toMatchObject({
      code: "WRONG_USAGE",
      message: `Cannot write artifacts to ${file}: ${file} is not a directory.`,
    });
    await expect(checkWritable(path.join(file, "below"))).rejects.toMatchObject({ code: "WRONG_USAGE" });
  });

  test("in a place that refuses new entries is an error, not an endless loop", async () => {
    await expect(writeArtifacts([artifact], "/proc/sluice-out")).rejects.toMatchObject({
      code: "ARTIFACTS_NOT_WRITTEN",
      message: expect.stringMatching(/^The cell ran, but its artifacts cannot be written to \/proc\/sluice-out: E/),
    });
  });
});
