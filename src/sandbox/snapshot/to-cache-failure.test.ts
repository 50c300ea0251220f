import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { toCacheFailure } from "./to-cache-failure.ts";

test("a full disk is reported as CACHE_FULL, also when another program met it", async () => {
  const cause = new Error("pip could not install: [Errno 28] No space left on device: 'x'");
  expect(await toCacheFailure(cause, "/somewhere")).toMatchObject({
    code: "CACHE_FULL",
    message: "No space is left for the cache directory /somewhere.",
    cause,
  });
});

test("an unwritable cache directory is reported with the reason, and any other error is returned unchanged", async () => {
  const home = await mkdtemp(path.join(tmpdir(), "sluice-cache-"));
  try {
    const other = new Error("something else");
    expect(await toCacheFailure(other, path.join(home, "not", "there", "yet"))).toBe(other);
    await writeFile(path.join(home, "file"), "");
    const cache = path.join(home, "file", "cache");
    expect(await toCacheFailure(other, cache)).toMatchObject({
      code: "CACHE_NOT_WRITABLE",
      message: `The cache directory ${cache} is not writable: ENOTDIR: not a directory, access '${cache}'.`,
    });
  } finally {
    await rm(home, { recursive: true });
  }
});
