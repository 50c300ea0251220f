import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFileBlobs } from "./create-file-blobs.ts";
import { deleteBlobs } from "./delete-blobs.ts";

const content = Buffer.from("some bytes");
let directory = "";
beforeEach(() => (directory = mkdtempSync(path.join(tmpdir(), "sluice-blobs-"))));
afterEach(() => rmSync(directory, { recursive: true }));

describe("blobs in files", () => {
  it("writes a blob anew when what has its name cannot be read as its bytes", async () => {
    const blobs = createFileBlobs({ directory, subject: "The blob" });
    const { name } = await blobs.put({ content });
    const file = path.join(directory, name.slice(0, 2), name);
    writeFileSync(file, "damaged");
    await blobs.put({ content });
    expect(blobs.read(name)).toEqual(content);
    rmSync(file);
    mkdirSync(file); // opens, and fails at the first read
    await expect(blobs.put({ content })).rejects.toMatchObject({ code: "STORAGE_UNAVAILABLE" });
  });

  it("takes no name that leads out of its directory", async () => {
    const outside = path.join(directory, "outside.txt");
    writeFileSync(outside, "not a blob");
    const blobs = createFileBlobs({ directory: path.join(directory, "blobs"), subject: "The blob" });
    for (const name of ["", "../outside.txt", "outside.txt", "/etc/passwd"]) {
      expect(() => blobs.read(name)).toThrow(expect.objectContaining({ code: "EVIDENCE_MISSING" }));
      await expect(Array.fromAsync(blobs.stream(name))).rejects.toMatchObject({ code: "EVIDENCE_MISSING" });
      expect(await blobs.get(name)).toBeNull();
      expect(() => blobs.delete(name)).toThrow(expect.objectContaining({ code: "EVIDENCE_MISSING" }));
    }
    expect(readdirSync(directory)).toContain("outside.txt");
  });

  it("deletes nothing for an empty name", async () => {
    const blobs = createFileBlobs({ directory, subject: "The blob" });
    const { name } = await blobs.put({ content });
    deleteBlobs(blobs, ["", name.slice(0, 2)]);
    expect(blobs.has(name)).toBe(true);
    deleteBlobs(blobs, [name]);
    expect(blobs.has(name)).toBe(false);
  });
});
