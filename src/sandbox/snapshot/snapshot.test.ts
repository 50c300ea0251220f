import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cacheDirectory } from "../../config/environment.ts";
import {
  findSnapshot,
  manifestSchema,
  readManifest,
  readWorkerCode,
  requireSnapshot,
  type SnapshotInfo,
  type SnapshotManifest,
} from "./find-snapshot.ts";
import { packagesPath, recipe } from "./recipe.ts";
import { runInRootfs, runProgram } from "./run-program.ts";
import { verifySnapshot } from "./verify-snapshot.ts";

const cache = cacheDirectory();

async function readManifestOf({ rootfs }: SnapshotInfo): Promise<SnapshotManifest> {
  return (await readManifest(manifestSchema, path.join(path.dirname(rootfs), "manifest.json")))!;
}

/** A missing snapshot is a failure, not a reason to skip: set-up must have built it. */
describe("the snapshot that set-up built", () => {
  it("is found again with the same content", async () => {
    expect(await findSnapshot({ cacheDirectory: cache })).toEqual(await requireSnapshot({ cacheDirectory: cache }));
  });

  it("passes every check of verify, from forbidden programs to the glyphs of each writing system", async () => {
    const { checks } = await verifySnapshot({ cacheDirectory: cache });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.map(({ name }) => name)).toEqual([
      ...["manifest", "files", "modes", "size", "forbidden", "bytecode", "libraries", "time zones", "fonts", "font cache", "BLAS"],
    ]);
  });

  it("has the locked version of every package", async () => {
    const snapshot = await requireSnapshot({ cacheDirectory: cache });
    const lock = await readFile(new URL("../../../python/requirements.lock", import.meta.url), "utf8");
    if (snapshot.source === "debian") return expect(snapshot.packages["pyarrow"]).toBeUndefined();
    expect(snapshot.packages).toMatchObject(
      Object.fromEntries([...lock.matchAll(/^([\w-]+)==(\S+)/gm)].map(([, name, version]) => [name, version])),
    );
  });

  it("lists its contents in its manifest", async () => {
    const snapshot = await requireSnapshot({ cacheDirectory: cache });
    const manifest = await readManifestOf(snapshot);
    expect(manifest).toMatchObject({
      schemaVersion: 1,
      id: snapshot.id,
      workerHash: (await readWorkerCode()).hash,
      source: snapshot.source,
    });
    expect(Object.keys(manifest.debianPackages)).toContain("python3.13-minimal");
  });

  it("has neither the host's environment nor a network", async () => {
    const snapshot = await requireSnapshot({ cacheDirectory: cache });
    const script = "import os, socket; print(sorted(os.environ), [name for _, name in socket.if_nameindex()])";
    const output = await runInRootfs({ rootfs: snapshot.rootfs, args: ["/usr/bin/python3", "-c", script] });
    expect(output).toBe("['HOME', 'LANG', 'MPLBACKEND', 'PATH', 'PWD', 'PYTHONDONTWRITEBYTECODE'] ['lo']");
  });
});

describe("a damaged snapshot", () => {
  it("fails verify for every kind of change, and forbidden modules and programs are found from inside", async () => {
    const copy = await mkdtemp(path.join(cache, "test-damaged-"));
    try {
      const snapshot = await requireSnapshot({ cacheDirectory: cache });
      const directory = path.join(copy, "snapshots", snapshot.id);
      await mkdir(path.dirname(directory));
      // These are hard links: replace or remove files, but never write to them.
      await runProgram({ program: "cp", args: ["-al", path.dirname(snapshot.rootfs), directory] });
      await damage(path.join(directory, "rootfs"));
      const { ok, checks } = await verifySnapshot({ cacheDirectory: copy });
      expect(ok).toBe(false);
      const found = new Map(checks.filter((check) => !check.ok).map(({ name, detail }) => [name, detail]));
      const changed = [
        ...["etc/group", "etc/hostname", "etc/hosts", "etc/localtime", "usr/bin/x86_64-linux-gnu-gcc-14"],
        ...["usr/local/bin/curl", `${packagesPath}/requests`, `${packagesPath}/requests/__init__.py`],
      ];
      expect(Object.fromEntries(found)).toEqual({
        files: changed.map((name) => `${name} was changed after the build`).join("; "),
        modes: "1 with wrong modes, for example etc/group",
        forbidden: "CheckFailedError: found module requests, /usr/bin/x86_64-linux-gnu-gcc-14, /usr/local/bin/curl",
        bytecode: expect.stringContaining("requests/__init__.py"),
      });
    } finally {
      await rm(copy, { recursive: true });
    }
  });

  it("fails verify when its list of files is missing or its manifest was changed", async () => {
    const copy = await mkdtemp(path.join(cache, "test-damaged-"));
    try {
      const snapshot = await requireSnapshot({ cacheDirectory: cache });
      const directory = path.join(copy, "snapshots", snapshot.id);
      await mkdir(path.join(directory, "rootfs", "usr", "bin"), { recursive: true });
      await writeFile(path.join(directory, "rootfs", "usr", "bin", "python3"), "");
      const manifest = await readManifestOf(snapshot);
      await writeFile(path.join(directory, "manifest.json"), JSON.stringify({ ...manifest, packages: {} }));
      const { ok, checks } = await verifySnapshot({ cacheDirectory: copy });
      expect(ok).toBe(false);
      expect(checks.slice(0, 2)).toEqual([
        { name: "manifest", ok: false, detail: "the id does not match the manifest" },
        { name: "files", ok: false, detail: "the recorded list of files was changed" },
      ]);
      await writeFile(path.join(directory, "manifest.json"), "{");
      expect(await findSnapshot({ cacheDirectory: copy })).toBeNull();
    } finally {
      await rm(copy, { recursive: true });
    }
  });
});

/** Replaces, removes and adds files, changes a mode and a link, and adds a forbidden program and a forbidden module. */
async function damage(rootfs: string): Promise<void> {
  const file = (name: string): string => path.join(rootfs, name);
  await rm(file("etc/hosts"));
  await writeFile(file("etc/hosts"), "127.0.0.1 somewhere\n", { mode: 0o644 });
  await rm(file("etc/hostname"));
  const group = await readFile(file("etc/group"));
  await rm(file("etc/group"));
  await writeFile(file("etc/group"), group);
  await chmod(file("etc/group"), 0o4666);
  await rm(file("etc/localtime"));
  await symlink("/usr/share/zoneinfo/Etc/GMT+1", file("etc/localtime"));
  await writeFile(file("usr/bin/x86_64-linux-gnu-gcc-14"), "", { mode: 0o755 });
  await writeFile(file("usr/local/bin/curl"), "", { mode: 0o755 });
  await mkdir(file(`${packagesPath}/requests`));
  await writeFile(file(`${packagesPath}/requests/__init__.py`), "", { mode: 0o644 });
}

describe("the recipe", () => {
  it("forbids network modules, package managers and compilers", () => {
    expect(recipe.forbiddenModules).toEqual(expect.arrayContaining(["requests", "urllib3", "httpx", "aiohttp", "yfinance", "pip"]));
    expect(recipe.forbiddenPrograms).toEqual(expect.arrayContaining(["curl", "wget", "gcc", "cc", "apt", "dpkg", "pip"]));
  });
});
