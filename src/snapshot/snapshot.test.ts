import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cacheDirectory } from "../config/cache-directory.ts";
import { findSnapshot, type SnapshotInfo } from "./find-snapshot.ts";
import { readManifestFile } from "./fixtures/read-manifest-file.ts";
import { recipe } from "./recipe.ts";
import { runInside } from "./run-inside.ts";
import { runProgram } from "./run-program.ts";
import { snapshotMissing, verifySnapshot } from "./verify-snapshot.ts";
import { readWorkerCode } from "./worker-code.ts";

const cache = cacheDirectory();

async function present(): Promise<SnapshotInfo> {
  const snapshot = await findSnapshot({ cacheDirectory: cache });
  if (!snapshot) throw snapshotMissing(cache);
  return snapshot;
}

/** Set-up built it; its absence is a failure and not a reason to skip. */
describe("the snapshot that set-up built", () => {
  it("is found, and again the same", async () => {
    expect(await findSnapshot({ cacheDirectory: cache })).toEqual(await present());
  });

  it("passes every check of verify, from the list of forbidden programs to the glyphs of each script", async () => {
    const { checks } = await verifySnapshot({ cacheDirectory: cache });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.map(({ name }) => name)).toEqual([
      ...["manifest", "files", "modes", "size", "forbidden", "bytecode", "libraries", "time zones", "fonts", "font cache", "BLAS"],
    ]);
  });

  it("has the locked version of every package", async () => {
    const snapshot = await present();
    const lock = await readFile(new URL("../../python/requirements.lock", import.meta.url), "utf8");
    if (snapshot.source === "debian") return expect(snapshot.packages["pyarrow"]).toBeUndefined();
    expect(snapshot.packages).toMatchObject(
      Object.fromEntries([...lock.matchAll(/^([\w-]+)==(\S+)/gm)].map(([, name, version]) => [name, version])),
    );
  });

  it("says in its manifest what it is made of", async () => {
    const snapshot = await present();
    const manifest = await readManifestFile(snapshot.rootfs);
    expect(manifest).toMatchObject({
      schemaVersion: 1,
      id: snapshot.id,
      workerHash: (await readWorkerCode()).hash,
      source: snapshot.source,
    });
    expect(Object.keys(manifest.debianPackages)).toContain("python3.13-minimal");
  });

  it("imports nothing from the host and sees no network", async () => {
    const snapshot = await present();
    const script = "import os, socket; print(sorted(os.environ), [name for _, name in socket.if_nameindex()])";
    const output = await runInside({ rootfs: snapshot.rootfs, args: ["/usr/bin/python3", "-c", script] });
    expect(output).toBe("['HOME', 'LANG', 'MPLBACKEND', 'PATH', 'PWD', 'PYTHONDONTWRITEBYTECODE'] ['lo']");
  });
});

describe("a damaged snapshot", () => {
  it("is told apart by verify", async () => {
    const copy = await mkdtemp(path.join(cache, "test-damaged-"));
    try {
      const snapshot = await present();
      const directory = path.join(copy, "snapshots", snapshot.id);
      await mkdir(path.dirname(directory));
      await runProgram({ program: "cp", args: ["-al", path.dirname(snapshot.rootfs), directory] });
      const damaged = path.join(directory, "rootfs", "etc", "hosts");
      await rm(damaged);
      await writeFile(damaged, "127.0.0.1 somewhere\n", { mode: 0o644 });
      const { ok, checks } = await verifySnapshot({ cacheDirectory: copy });
      expect(ok).toBe(false);
      expect(checks.find(({ name }) => name === "files")).toEqual({ name: "files", ok: false, detail: "etc/hosts is not as it was built" });
    } finally {
      await rm(copy, { recursive: true });
    }
  });
});

describe("the recipe", () => {
  it("forbids what the issue lists", () => {
    expect(recipe.forbiddenModules).toEqual(expect.arrayContaining(["requests", "urllib3", "httpx", "aiohttp", "yfinance", "pip"]));
    expect(recipe.forbiddenPrograms).toEqual(expect.arrayContaining(["curl", "wget", "gcc", "cc", "apt", "dpkg", "pip"]));
  });
});
