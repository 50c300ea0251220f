import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeBlobStore } from "../../test/blob-store-contract.ts";
import { runAsTenant } from "../concurrency/tenant.ts";
import type { BlobStore } from "./blob-store.ts";
import { createFileBlobs } from "./create-file-blobs.ts";
import { deleteBlobs } from "./delete-blobs.ts";

let directory = "";
beforeEach(() => (directory = mkdtempSync(path.join(tmpdir(), "sluice-blobs-"))));
afterEach(() => rmSync(directory, { recursive: true }));
const open = (): BlobStore => createFileBlobs({ directory: path.join(directory, "blobs"), subject: "The blob" });

describeBlobStore("file", open);

describe("blobs in files", () => {
  const content = Buffer.from("some bytes");

  it("writes a damaged blob again", async () => {
    const blobs = open();
    const { name } = await blobs.put({ content });
    const file = path.join(directory, "blobs", name.slice(0, 2), name);
    writeFileSync(file, "damaged");
    await blobs.put({ content });
    expect(blobs.read(name)).toEqual(content);
    rmSync(file);
    mkdirSync(file); // can be opened, but reading it fails
    await expect(blobs.put({ content })).rejects.toMatchObject({ code: "STORAGE_UNAVAILABLE" });
  });

  it("writes files of tenants in turn: many large files of one do not delay another's", async () => {
    const blobs = open();
    let written = 0;
    const greedy = Array.from({ length: 40 }, (_, index) =>
      runAsTenant("greedy", () => blobs.put({ content: Buffer.alloc(4 << 20, index + 1) }).then(() => (written += 1))),
    );
    await Promise.race(greedy); // all others have begun and wait for their next chunk
    await runAsTenant("neighbour", () => blobs.put({ content }));
    expect(written).toBeLessThan(40 / 2);
    await Promise.all(greedy);
    expect(written).toBe(40);
  });

  it("lists and deletes drafts, and nothing outside its directory", () => {
    const blobs = open();
    const drafts = ["1.part", "drafts/2.part", `ab/ab${"0".repeat(62)}.3.part`];
    for (const name of [...drafts, "../outside.part"]) {
      const file = path.join(directory, "blobs", name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, "half");
    }
    expect(blobs.list().map(({ name, isDraft }) => [name, isDraft])).toEqual(expect.arrayContaining(drafts.map((name) => [name, true])));
    deleteBlobs(blobs, [...drafts, "../outside.part"]);
    expect(blobs.list()).toEqual([]);
    for (const name of ["", "../outside.part", "/etc/passwd"])
      expect(() => blobs.delete(name)).toThrow(expect.objectContaining({ code: "EVIDENCE_MISSING" }));
    expect(existsSync(path.join(directory, "outside.part"))).toBe(true);
  });
});
