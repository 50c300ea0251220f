import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { createFileStore } from "../src/artifacts/artifact-store.ts";
import { describeArtifactStore } from "./artifact-store-contract.ts";

const made: string[] = [];
const newDirectory = async (): Promise<string> => {
  const directory = await mkdtemp(path.join(tmpdir(), "sluice-store-"));
  made.push(directory);
  return directory;
};
afterAll(async () => await Promise.all(made.map((directory) => rm(directory, { recursive: true, force: true }))));

describeArtifactStore("file", async () => createFileStore({ directory: await newDirectory() }));

const bytes = Buffer.from("the picture");
const filesIn = async (directory: string): Promise<string[]> =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name);

describe("the file store", () => {
  it("writes the same content once, and storing it again refreshes its age", async () => {
    const directory = await newDirectory();
    const store = createFileStore({ directory });
    const { url, contentHash } = await store.put({ bytes, type: "png" });
    const before = await stat(fileURLToPath(url));
    await utimes(fileURLToPath(url), 0, 0);
    await Promise.all(Array.from({ length: 20 }, () => store.put({ bytes, type: "png" })));
    const after = await stat(fileURLToPath(url));
    expect([after.ino, after.mtimeMs > 0]).toEqual([before.ino, true]);
    expect(await filesIn(directory)).toEqual([`${contentHash}.png`]);
    expect(fileURLToPath(url)).toBe(path.join(directory, contentHash.slice(0, 2), `${contentHash}.png`));
  });

  it.each([
    ["cut short", async (file: string) => await truncate(file, 3)],
    ["changed without a change of size", async (file: string) => await writeFile(file, "THE PICTURE")],
  ])("detects a file that was %s, and repairs it when the same content is stored again", async (_, damage) => {
    const store = createFileStore({ directory: await newDirectory() });
    const { url, contentHash } = await store.put({ bytes, type: "png" });
    await damage(fileURLToPath(url));
    await expect(store.get(contentHash, "png")).rejects.toMatchObject({
      code: "ARTIFACT_DAMAGED",
      message: `The artifact ${contentHash} is damaged: its content does not match its hash.`,
    });
    await store.put({ bytes, type: "png" });
    expect(await store.get(contentHash, "png")).toEqual(bytes);
  });

  it("reports that it cannot write to its directory", async () => {
    const directory = path.join(await newDirectory(), "file");
    await writeFile(directory, "in the way");
    await expect(createFileStore({ directory }).put({ bytes, type: "png" })).rejects.toMatchObject({
      code: "STORAGE_UNAVAILABLE",
      message: expect.stringContaining(`Artifacts cannot be stored in ${directory}: `),
    });
  });

  it("removes the drafts of killed writers, and keeps those of running ones", async () => {
    const directory = await newDirectory();
    const drafts = path.join(directory, "drafts");
    await mkdir(drafts);
    const [old, young] = ["old.part", "young.part"].map((name) => path.join(drafts, name));
    for (const draft of [old!, young!]) await writeFile(draft, "half a pic");
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(old!, hourAgo, hourAgo);
    const { contentHash } = await createFileStore({ directory }).put({ bytes, type: "png" });
    expect((await filesIn(directory)).toSorted()).toEqual([`${contentHash}.png`, "young.part"].toSorted());
  });

  it("contains only complete artifacts after its writers were killed at any moment", async () => {
    const directory = await newDirectory();
    for (const delayMs of [0, 7, 23]) {
      const child = spawn(process.execPath, [path.join(import.meta.dirname, "fixtures", "write-artifacts-process.ts"), directory], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      await wait(delayMs); // kill in the middle of a write
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    const store = createFileStore({ directory });
    const named = (await filesIn(directory)).filter((name) => name.endsWith(".png"));
    expect(named.length).toBeGreaterThanOrEqual(3);
    for (const name of named) {
      const file = path.join(directory, name.slice(0, 2), name);
      expect(await store.get(name.slice(0, 64), "png")).toEqual(await readFile(file));
    }
  });
});
