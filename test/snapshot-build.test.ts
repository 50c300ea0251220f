import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { hashLayerInputs } from "../src/sandbox/snapshot/find-snapshot.ts";

const sluice = path.join(import.meta.dirname, "../bin/sluice");

/** Builds in a cache that has the layer (as hard links) but no snapshot, so that each test builds a real snapshot in seconds. */
describe("sluice snapshot build", () => {
  let cache: string;
  beforeAll(async () => {
    const real = cacheDirectory();
    cache = await mkdtemp(path.join(real, "build-"));
    const key = await hashLayerInputs();
    const layer = (await readdir(path.join(real, "layers"))).find((name) => name.startsWith(`${key}-`))!;
    await mkdir(path.join(cache, "layers"));
    expect(spawnSync("cp", ["-al", path.join(real, "layers", layer), path.join(cache, "layers", layer)]).status).toBe(0);
  }, 120_000);
  afterAll(async () => await rm(cache, { recursive: true }), 120_000);

  interface Build {
    readonly child: ChildProcess;
    readonly ended: Promise<{ status: number | null; stdout: string; stderr: string }>;
    /** Resolves when standard error has matched. */
    hasPrinted(pattern: RegExp): Promise<void>;
  }

  function startBuild(): Build {
    const child = spawn(sluice, ["snapshot", "build", "--json"], { env: { ...process.env, SLUICE_CACHE: cache }, stdio: "pipe" });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
    return {
      child,
      ended: once(child, "close").then(([status]) => ({ status: status as number | null, ...output })),
      async hasPrinted(pattern) {
        while (!pattern.test(output.stderr)) await once(child.stderr, "data");
      },
    };
  }

  const list = async (name: string): Promise<string[]> => await readdir(path.join(cache, name)).catch(() => []);

  /** Waits until the worker code is being compiled in a copy of the layer, which is the longest step. */
  async function waitUntilHalfBuilt(): Promise<void> {
    for (;;) {
      const builds = (await list("building")).filter((name) => !name.endsWith(".owner"));
      const found = await Promise.all(builds.map((name) => list(`building/${name}/snapshot/rootfs/usr`)));
      if (found.flat().length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  test.each(["SIGINT", "SIGKILL"] as const)(
    "that is ended by %s leaves no snapshot and does not disturb the next build",
    async (signal) => {
      const { child, ended } = startBuild();
      await waitUntilHalfBuilt();
      child.kill(signal);
      const { status, stderr } = await ended;
      expect(await list("snapshots")).toEqual([]);
      if (signal === "SIGKILL") return;
      expect([status, stderr]).toEqual([130, expect.stringContaining("sluice: interrupted; nothing incomplete was left behind.\n")]);
      expect([await list("building"), await list("locks")]).toEqual([[], []]);
    },
    120_000,
  );

  test("returns the same snapshot to two concurrent builds and removes the files of the killed one", async () => {
    const first = startBuild();
    await first.hasPrinted(/Worker code/);
    first.child.kill("SIGSTOP"); // so that it is still building when the other one asks for the lock
    const second = startBuild();
    await second.hasPrinted(/Waiting for another build \(process \d+\)/);
    first.child.kill("SIGCONT");
    const builds = await Promise.all([first.ended, second.ended]);
    expect(builds.map(({ status }) => status)).toEqual([0, 0]);
    const [one, two] = builds.map(({ stdout }) => JSON.parse(stdout) as { id: string });
    expect(one).toEqual(two);
    expect([await list("snapshots"), await list("building"), await list("locks")]).toEqual([[one!.id], [], []]);
    const verified = spawnSync(sluice, ["snapshot", "verify"], { env: { ...process.env, SLUICE_CACHE: cache }, encoding: "utf8" });
    expect([verified.status, verified.stdout]).toEqual([0, expect.stringContaining("The snapshot is valid.\n")]);
  }, 240_000);
});
