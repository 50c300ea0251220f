import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { manifestSchema, readManifest, toSnapshotId, type SnapshotManifest } from "./find-snapshot.ts";

const manifest: SnapshotManifest = {
  schemaVersion: 1,
  id: "0",
  architecture: "x64",
  python: "3.13.5",
  source: "wheels",
  packages: { numpy: "2.4.6", pandas: "3.1.1" },
  debianPackages: { libc6: "2.41" },
  inputsHash: "a",
  contentHash: "b",
  workerHash: "c",
  bytes: 1,
  builtAt: "2026-11-15T00:00:00.000Z",
};

describe("toSnapshotId", () => {
  it.each([
    ["a package's version", { packages: { numpy: "2.4.7", pandas: "3.1.1" } }],
    ["a Debian package's version", { debianPackages: { libc6: "2.42" } }],
    ["the worker code", { workerHash: "d" }],
    ["the source", { source: "debian" as const }],
    ["the content of a file", { contentHash: "e" }],
  ])("changes with %s", (_title, change) => {
    expect(toSnapshotId({ ...manifest, ...change })).not.toBe(toSnapshotId(manifest));
  });

  it("does not depend on build time, size or the order of packages", () => {
    const same = { ...manifest, bytes: 2, builtAt: "2027-01-01T00:00:00.000Z", packages: { pandas: "3.1.1", numpy: "2.4.6" } };
    expect(toSnapshotId(same)).toBe(toSnapshotId(manifest));
  });
});

describe("readManifest", () => {
  it("returns the manifest, null when there is no file, and throws for a newer version or broken JSON", async () => {
    const directory = await mkdtemp(path.join(tmpdir(), "sluice-manifest-"));
    const file = path.join(directory, "manifest.json");
    try {
      expect(await readManifest(manifestSchema, file)).toBeNull();
      await writeFile(file, JSON.stringify(manifest));
      expect(await readManifest(manifestSchema, file)).toEqual(manifest);
      await writeFile(file, JSON.stringify({ ...manifest, schemaVersion: 2 }));
      await expect(readManifest(manifestSchema, file)).rejects.toMatchObject({ code: "SNAPSHOT_MANIFEST_UNKNOWN" });
      await writeFile(file, "{");
      await expect(readManifest(manifestSchema, file)).rejects.toMatchObject({ code: "SNAPSHOT_MANIFEST_UNKNOWN" });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
