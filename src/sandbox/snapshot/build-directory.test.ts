import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { currentProcess, toProcessKey } from "../../processes.ts";
import { openLock, openBuildDirectory } from "./build-directory.ts";

const moduleUrl = new URL("./build-directory.ts", import.meta.url).href;

describe("a build directory", () => {
  let cache: string;

  beforeEach(async () => {
    cache = await mkdtemp(path.join(tmpdir(), "sluice-build-directory-"));
  });

  afterEach(async () => await rm(cache, { recursive: true }));

  it("is removed with everything in it when the build ends", async () => {
    {
      await using build = await openBuildDirectory(cache);
      await writeFile(path.join(build.directory, "file"), "");
    }
    expect(await readdir(path.join(cache, "building"))).toEqual([]);
  });

  it("is kept while its build runs and removed by the next build after a kill", async () => {
    const builder = await startProcess(`const w = await openBuildDirectory(${JSON.stringify(cache)}); console.log(w.directory)`);
    const directory = builder.line;
    {
      await using _other = await openBuildDirectory(cache);
      await access(directory);
    }
    await builder.kill();
    await access(directory);
    {
      await using _next = await openBuildDirectory(cache);
      await expect(access(directory)).rejects.toMatchObject({ code: "ENOENT" });
    }
    expect(await readdir(path.join(cache, "building"))).toEqual([]);
  });
});

describe("a build lock", () => {
  let cache: string;

  beforeEach(async () => {
    cache = await mkdtemp(path.join(tmpdir(), "sluice-build-lock-"));
  });

  afterEach(async () => await rm(cache, { recursive: true }));

  it("has one holder at a time and passes to the next one when the holder is killed", async () => {
    const file = path.join(cache, "locks", "one");
    const holder = await startProcess(`await openLock({ file: ${JSON.stringify(file)} }); console.log("held")`);
    const waiting = Promise.withResolvers<number>();
    const next = openLock({ file, onWait: waiting.resolve });
    expect(await waiting.promise).toBe(holder.pid);
    await holder.kill();
    await (await next)[Symbol.asyncDispose]();
    expect(await readdir(path.join(cache, "locks"))).toEqual([]);
  });

  it("counts a holder on another machine as alive while its heartbeat is recent, whatever its pid", async () => {
    const file = path.join(cache, "one");
    const waits = async (boot: string): Promise<boolean> => {
      await writeFile(file, `${toProcessKey({ ...currentProcess(), startTime: "1" })} ${boot}`);
      const abort = new AbortController();
      const lock = openLock({ file, signal: abort.signal, onWait: () => abort.abort() });
      return await lock.then(
        async (held) => (await held[Symbol.asyncDispose](), false),
        () => true,
      );
    };
    const boot = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
    expect([await waits("another"), await waits(boot)]).toEqual([true, false]);
  });

  it("stops waiting on abort", async () => {
    const file = path.join(cache, "locks", "one");
    await using _held = await openLock({ file });
    const abort = new AbortController();
    const next = openLock({ file, signal: abort.signal, onWait: () => abort.abort(new Error("enough")) });
    await expect(next).rejects.toThrow(/enough|aborted/);
    expect(await readdir(path.join(cache, "locks"))).toEqual(["one"]);
  });
});

/** Starts another process that runs `code` and then waits to be killed. */
async function startProcess(code: string): Promise<{ line: string; pid: number; kill: () => Promise<void> }> {
  const script = `import { openLock, openBuildDirectory } from ${JSON.stringify(moduleUrl)}; ${code}; setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [chunk] = (await once(child.stdout, "data")) as [Buffer];
  return {
    line: chunk.toString().trim(),
    pid: child.pid ?? 0,
    async kill() {
      const closed = once(child, "exit");
      child.kill("SIGKILL");
      await closed;
    },
  };
}
