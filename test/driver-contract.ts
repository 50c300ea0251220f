import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createArtifactChecker } from "../src/artifacts/create-artifact-checker.ts";
import { cacheDirectory } from "../src/config/environment.ts";
import type { Lease, SandboxDriver, Snapshot } from "../src/sandbox/contract.ts";
import { defaultLimits, withLimits } from "../src/sandbox/limits.ts";
import { listProcessTree } from "../src/processes.ts";
import { openRunDirectory, type RunDirectory } from "../src/sandbox/run-directory.ts";
import { workerEnvironment } from "../src/sandbox/worker-environment.ts";
import { findSnapshot } from "../src/sandbox/snapshot/find-snapshot.ts";
import { runCell } from "../src/cells/run-cell.ts";

/** The cgroups of all processes that this process started. Each lease has its own. */
async function listChildCgroups(): Promise<readonly string[]> {
  const pids = await listProcessTree([process.pid]);
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "")));
  return [...new Set(texts)].filter((text) => text !== "").sort();
}

/** Tests a driver against src/sandbox/SPEC.md. Each driver's test file calls this. */
export function describeDriverContract(name: string, create: (runDirectory: RunDirectory) => SandboxDriver): void {
  describe(`${name} keeps the driver contract`, () => {
    let runDirectory: RunDirectory;
    let driver: SandboxDriver;
    let snapshot: Snapshot;
    let lease: Lease;
    let cells = 0;
    const artifactChecker = createArtifactChecker();

    beforeAll(async () => {
      runDirectory = await openRunDirectory();
      driver = create(runDirectory);
      snapshot = (await findSnapshot({ cacheDirectory: cacheDirectory() }))!;
      await driver.prepare({ snapshot });
      lease = await open();
    }, 180_000);

    afterAll(async () => {
      await lease?.close();
      await driver?.[Symbol.asyncDispose]();
      await runDirectory?.[Symbol.asyncDispose]();
    }, 60_000);

    async function open(limits = defaultLimits, signal?: AbortSignal): Promise<Lease> {
      return await driver.open({ snapshot, limits, networkPolicy: "deny-all", ...(signal && { signal }) });
    }

    async function evaluate(code: string, on: Lease = lease, limits = defaultLimits): Promise<unknown> {
      cells += 1;
      const run = await runCell({
        lease: on,
        cell: cells,
        code: Buffer.from(code),
        rollback: driver.rollback === "fork" ? "fork" : "none",
        names: {},
        expect: null,
        limits,
        artifactChecker,
      });
      expect(run.error?.traceback ?? run.error?.message, code).toBeUndefined();
      return run.resultJson === null ? null : JSON.parse(run.resultJson);
    }

    test("1: preflight reports that the driver is usable, and its version", async () => {
      expect(await driver.preflight()).toMatchObject({ usable: true, version: expect.stringMatching(/\d/) });
    });

    test("2: leases have unique ids", async () => {
      await using other = await open();
      expect(other.id).not.toBe(lease.id);
      expect(other.driver).toBe(driver.name);
    });

    test("2: the worker has imported the stack when it answers", async () => {
      const missing =
        "import sys\n[name for name in ('pandas', 'scipy.optimize', 'scipy.signal', 'scipy.stats', 'statsmodels.api', 'matplotlib.pyplot') if name not in sys.modules]";
      expect(await evaluate(missing)).toEqual([]);
    });

    test("3: an aborted open rejects with the reason and leaves no cgroup or directory", async () => {
      const before = await listChildCgroups();
      const stop = new AbortController();
      const opening = open(defaultLimits, stop.signal);
      stop.abort(new Error("changed my mind"));
      await expect(opening).rejects.toThrow("changed my mind");
      await expect(open(defaultLimits, AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
      const left = async (): Promise<unknown> => [
        (await listChildCgroups()).filter((one) => !before.includes(one)),
        (await readdir(path.join(runDirectory.path, "leases"))).filter((id) => id !== lease.id),
      ];
      await vi.waitFor(async () => expect(await left()).toEqual([[], []]), { timeout: 20_000 });
    });

    test("4 and 5: close is idempotent, and died reports that the host closed the sandbox", async () => {
      const other = await open();
      await Promise.all([other.close(), other.close()]);
      await other.close();
      expect(await other.died).toMatchObject({ cause: "closed" });
      await expect(other.channel.send({ type: "hello", nonce: "x", spare: false })).rejects.toMatchObject({ code: "SANDBOX_LOST" });
    });

    test("5: died reports how a sandbox ended that was not closed", async () => {
      const other = await open();
      await other.channel.send({ type: "no-such-frame" });
      const death = await other.died;
      expect(death.cause).toMatch(/exited|killed/);
      expect(death.detail.length).toBeGreaterThan(3);
      await other.close();
    });

    test("8: the worker has a non-zero uid, no capabilities, no_new_privs and a seccomp filter", async () => {
      const status = (await evaluate(
        "dict(line.rstrip().split(':\\t', 1) for line in open('/proc/self/status') if line.startswith(('Uid', 'Gid', 'Cap', 'NoNew', 'Seccomp:')))",
      )) as Record<string, string>;
      expect(status["Uid"]).toBe("1000\t1000\t1000\t1000");
      expect(status["Gid"]).toBe("1000\t1000\t1000\t1000");
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd"]) expect(Number.parseInt(status[set]!, 16), set).toBe(0);
      if (status["NoNewPrivs"] !== undefined) expect(status["NoNewPrivs"]).toBe("1");
      expect(await evaluate("import ctypes\nctypes.CDLL(None).prctl(39, 0, 0, 0, 0)")).toBe(1); // PR_GET_NO_NEW_PRIVS
      expect(status["Seccomp"]).toBe("2");
      expect(await evaluate("import os\nos.getgroups()")).toEqual([]);
    });

    test("9: the channel is the only open descriptor besides 0, 1 and 2 when user code starts", async () => {
      await lease.channel.send({ type: "input", alias: "unread", format: "json" }, Buffer.from("[1]"));
      expect((await lease.channel.receive())?.header).toEqual({ type: "input-ok", alias: "unread" });
      const targets = (await evaluate(
        "import os\nfound = {}\nfor n in os.listdir('/proc/self/fd'):\n    try: found[n] = os.readlink('/proc/self/fd/' + n)\n    except FileNotFoundError: pass\nfound",
      )) as Record<string, string>;
      const { "0": stdin, "1": stdout, "2": stderr, ...others } = targets;
      expect(stdin).toBe("/dev/null");
      expect([stdout, stderr].every((target) => target?.startsWith("pipe:"))).toBe(true);
      expect(Object.values(others).filter((target) => !target.startsWith("/proc/")).length).toBe(1);
      expect(Object.values(others).find((target) => !target.startsWith("/proc/"))).toMatch(/^socket:/);
    });

    test("10: the environment is exactly the worker's", async () => {
      const environment = (await evaluate("import os\ndict(os.environ)")) as Record<string, string>;
      expect(environment).toEqual(workerEnvironment);
    });

    test("11: the root is read-only; scratch is writable, private and starts with its image folder", async () => {
      const denied =
        "import os, errno\nseen = []\nfor p in ['/x', '/usr/x', '/etc/x', '/usr/local/lib/python3.13/dist-packages/sluice/x', '/dev/x', '/proc/x', '/var/x', '/run/x', '/home/x']:\n    try:\n        open(p, 'w').close(); seen.append(p)\n    except OSError: pass\nseen";
      expect(await evaluate(denied)).toEqual([]);
      expect(
        await evaluate(
          "import os\nopen('a.txt', 'w').write('a'); open('/tmp/b', 'w').write('b'); open('/dev/shm/c', 'w').write('c')\n[os.getcwd(), os.path.isdir('out/images'), sorted(os.listdir('.'))]",
        ),
      ).toEqual(["/sandbox", true, expect.arrayContaining(["a.txt", "out"])]);
      await using other = await open();
      expect(await evaluate("import os\n[os.path.exists('a.txt'), os.path.exists('/tmp/b'), os.path.exists('/dev/shm/c')]", other)).toEqual(
        [false, false, false],
      );
    });

    test("12: loopback is the only network interface", async () => {
      expect(
        await evaluate("[line.split(':')[0].strip() for line in open('/proc/self/net/dev') if ':' in line and 'lo:' not in line]"),
      ).toEqual([]);
    });

    test("13: processes of the host and of other sandboxes and files of the host are invisible", async () => {
      await using other = await open();
      await evaluate("import subprocess, sys\nleft = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])", other);
      const listExecutables =
        "import os\n[os.readlink(f'/proc/{p}/exe') for p in os.listdir('/proc') if p.isdigit() and os.access(f'/proc/{p}/exe', os.R_OK)]";
      expect(new Set((await evaluate(listExecutables)) as string[])).toEqual(new Set(["/usr/bin/python3.13"]));
      expect(await evaluate("import os\nlen([p for p in os.listdir('/proc') if p.isdigit()]) < 6")).toBe(true);
      expect(await evaluate(`import os\nos.path.exists(${JSON.stringify(import.meta.filename)})`)).toBe(false);
    });

    test("13: random values that a sandbox must not share with another differ, also those drawn once at the start of a program", async () => {
      await using other = await open();
      const draw = `
import ctypes, multiprocessing, os, random, secrets, ssl, tempfile, uuid
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
libc.arc4random.restype = ctypes.c_uint
{
    "os.urandom": os.urandom(16).hex(),
    "secrets": secrets.token_hex(),
    "uuid4": str(uuid.uuid4()),
    "SystemRandom": random.SystemRandom().random(),
    "ssl": ssl.RAND_bytes(16).hex(),
    "default_rng": float(np.random.default_rng().random()),
    "arc4random": libc.arc4random(),
    "temporary file": tempfile.mktemp(),
    "multiprocessing's key": bytes(multiprocessing.current_process().authkey).hex(),
    "AT_RANDOM": ctypes.string_at(libc.getauxval(25), 16).hex(),
}`;
      const [mine, theirs] = (await Promise.all([evaluate(draw), evaluate(draw, other)])) as Record<string, unknown>[];
      expect(Object.keys(mine!).filter((name) => mine![name] === theirs![name])).toEqual([]);
    });

    test("14: going over the memory limit is reported as out of memory", async () => {
      const limits = withLimits({ memoryBytes: 400 * 1024 * 1024 });
      await using other = await open(limits);
      const code = Buffer.from("held = [bytearray(8 * 1024 * 1024) for _ in range(200)]");
      const run = await runCell({ lease: other, cell: 1, code, rollback: "none", names: {}, expect: null, limits, artifactChecker });
      expect(run.status).toBe("out_of_memory");
      expect(run.error?.limit).toMatchObject({ name: "memoryBytes", allowed: 400 * 1024 * 1024 });
    });

    test("15: processes, open files and scratch are limited", async () => {
      const limits = withLimits({ scratchBytes: 32 * 1024 * 1024, openFiles: 128, processes: 24 });
      await using other = await open(limits);
      const files =
        "held = []\ntry:\n    for _ in range(500): held.append(open('/dev/null'))\nexcept OSError as e: got = e.errno\nfor f in held: f.close()\n[got, len(held) < 128]";
      expect(await evaluate(files, other, limits)).toEqual([24, true]); // EMFILE
      const scratch =
        "import os\nwritten = 0\ntry:\n    with open('big', 'wb', buffering=0) as f:\n        for _ in range(128): written += f.write(bytes(1 << 20))\nexcept OSError as e: got = e.errno\nos.remove('big')\n[got, written <= 32 << 20]";
      expect(await evaluate(scratch, other, limits)).toEqual([28, true]); // ENOSPC
      const threads =
        "import threading\ngate = threading.Event()\nstarted = []\ntry:\n    for _ in range(200):\n        t = threading.Thread(target=gate.wait); t.start(); started.append(t)\nexcept RuntimeError: pass\ngate.set()\nfor t in started: t.join()\nlen(started) < 24";
      expect(await evaluate(threads, other, limits)).toBe(true);
    });

    test("16: usage reports CPU time and the memory peak since the last reset", async () => {
      await evaluate(
        "import time\nheld = np.ones(20_000_000)\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ndel held",
      );
      const used = await lease.usage();
      expect(used.peakMemoryBytes).toBeGreaterThan(150_000_000);
      expect(used.cpuMs).toBeGreaterThan(250);
      await lease.resetPeak();
      expect((await lease.usage()).peakMemoryBytes).toBeLessThan(used.peakMemoryBytes);
    });

    test("19: bytes of any content arrive as sent", async () => {
      const bytes = Buffer.alloc(3_000_001);
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = (at * 31 + (at >> 8)) & 255;
      await lease.channel.send({ type: "input", alias: "blob", format: "bytes" }, bytes);
      expect((await lease.channel.receive())?.header).toEqual({ type: "input-ok", alias: "blob" });
      const { createHash } = await import("node:crypto");
      expect(await evaluate("import hashlib\n[len(blob), hashlib.sha256(blob).hexdigest()]")).toEqual([
        bytes.length,
        createHash("sha256").update(bytes).digest("hex"),
      ]);
    });

    test("17: bytes that are not a frame end the lease", async () => {
      await using other = await open();
      const garbage =
        "import os\nfd = next(n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}') and os.readlink(f'/proc/self/fd/{n}').startswith('socket'))\nos.write(fd, b'no frame at all')\nimport time\ntime.sleep(60)";
      const run = await runCell({
        lease: other,
        cell: 1,
        code: Buffer.from(garbage),
        rollback: "none",
        names: {},
        expect: null,
        limits: defaultLimits,
        artifactChecker,
      });
      expect([run.status, run.leaseUsable, (await other.died).cause]).toEqual(["sandbox_lost", false, expect.any(String)]);
    });

    test("18: a frame that is not allowed at that point ends the lease", async () => {
      await using other = await open();
      const forged =
        "import os, struct\nfd = next(n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}') and os.readlink(f'/proc/self/fd/{n}').startswith('socket'))\nhead = b'{\"type\":\"ready\",\"nonce\":\"x\"}'\nos.write(fd, struct.pack('>III', 0x534C5501, len(head), 0) + head)";
      const run = await runCell({
        lease: other,
        cell: 1,
        code: Buffer.from(forged),
        rollback: "none",
        names: {},
        expect: null,
        limits: defaultLimits,
        artifactChecker,
      });
      expect(run.status).toBe("sandbox_lost");
      expect(run.leaseUsable).toBe(false);
      expect(await other.died).toBeDefined();
    });
  });
}
