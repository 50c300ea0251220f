import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Lease, SandboxLimits } from "../../contract.ts";
import { listProcessTree } from "../../../processes.ts";
import { seccompPolicy } from "../../seccomp/policy.ts";
import { syscallNumbers } from "../../seccomp/syscall-numbers.ts";
import { workerEnvironment } from "../../worker-environment.ts";
import { ask, openTestDriver, runTestCell, type TestDriver } from "./fixtures/test-driver.ts";

const MB = 1024 * 1024;
const numbers = syscallNumbers[process.arch === "arm64" ? "aarch64" : "x86_64"];
let host: TestDriver;

beforeAll(async () => {
  host = await openTestDriver();
  await host.driver.prepare({ snapshot: host.snapshot });
}, 600_000);
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
});

async function open(limits: Partial<SandboxLimits> = {}, from: TestDriver = host): Promise<Lease> {
  const lease = await from.open(limits);
  onTestFinished(() => lease.close());
  return lease;
}

describe("a bubblewrap sandbox", () => {
  it("is forked and names its driver", async () => {
    const lease = await open();
    expect([lease.driver, lease.start]).toEqual(["bubblewrap", "forked"]);
    expect(host.driver.rollback).toBe("fork");
  });

  it("has its own namespaces, which it shares neither with the host and the zygote nor with other sandboxes", async () => {
    const kinds = ["user", "mnt", "pid", "ipc", "net", "uts", "cgroup"];
    const read = (lease: Lease): Promise<string[]> =>
      ask(lease, `import os; answer = [os.readlink(f"/proc/self/ns/{kind}") for kind in ${JSON.stringify(kinds)}]`);
    const [first, second] = [await read(await open()), await read(await open())];
    const [, zygote] = await listProcessTree([bwrapPid()]);
    const outside = [process.pid, zygote!].map((pid) => kinds.map((kind) => readlinkSync(`/proc/${pid}/ns/${kind}`)));
    for (const [index, kind] of kinds.entries()) {
      const links = [first[index], second[index], ...outside.map((list) => list[index])];
      const expected = kind === "user" || kind === "cgroup" ? 3 : 4; // the zygote may share these two with the host
      expect(new Set(links).size, `${kind}: ${links.join(" ")}`).toBeGreaterThanOrEqual(expected);
    }
  });

  it("is uid 1000 without groups, capabilities or new privileges, under one seccomp filter", async () => {
    const status = await ask<string>(await open(), "answer = open('/proc/self/status').read()");
    const read = (name: string): string => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)![1]!.trim();
    expect([read("Uid"), read("Gid")]).toEqual(["1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000"]);
    if (process.getuid?.() === 0) expect(read("Groups")).toBe("");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) expect(read(set)).toBe("0000000000000000");
    expect([read("NoNewPrivs"), read("Seccomp"), read("Seccomp_filters")]).toEqual(["1", "2", "1"]);
  });

  it("has its securebits locked", async () => {
    expect(await ask(await open(), "import ctypes; answer = ctypes.CDLL(None).prctl(27, 0, 0, 0, 0)")).toBe(0xef);
  });

  it("runs on the host as a user who owns nothing", async () => {
    const lease = await open();
    const inits = await sandboxInits();
    expect(inits).toHaveLength(1);
    for (const pid of await listProcessTree(inits)) {
      const uid = Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]);
      if (process.getuid?.() === 0) expect(uid).toBeGreaterThanOrEqual(2 ** 31);
      else expect(uid).toBe(process.getuid?.());
    }
    await lease.close();
  });

  it("sees only the worker's environment, its own host name and its own processes", async () => {
    const lease = await open();
    const view = await ask<{ environment: Record<string, string>; name: string; cwd: string; processes: string[]; parent: number }>(
      lease,
      `import os, socket
answer = dict(environment=dict(os.environ), name=socket.gethostname(), cwd=os.getcwd(), processes=[p for p in os.listdir("/proc") if p.isdigit()], parent=os.getppid())`,
    );
    const { PWD: _, ...environment } = view.environment;
    expect(environment).toEqual(workerEnvironment);
    expect([view.name, view.cwd]).toEqual(["sandbox", "/sandbox"]);
    expect(view.processes.length).toBeLessThanOrEqual(4);
  });

  it("has no open descriptors except 0, 1, 2 and the worker's socket, and cannot list those of the monitor", async () => {
    const lease = await open();
    const fds = await ask<string[]>(
      lease,
      `import os\nanswer = sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}"))`,
    );
    expect(fds).toEqual(["/dev/null", "pipe", "pipe", "socket"]);
    const monitor = await ask<string>(
      lease,
      `import os\ntry:\n    answer = repr(os.listdir("/proc/1/fd"))\nexcept OSError as error:\n    answer = type(error).__name__`,
    );
    expect(monitor).toBe("PermissionError");
  });

  it("refuses every system call that is not on the list", async () => {
    const answered = seccompPolicy.refused.flatMap(({ names }) => names); // with another errno
    const allowed = new Set([...seccompPolicy.allowed.flatMap(({ names }) => names), ...answered, "exit", "exit_group"]);
    const refused = Object.fromEntries(Object.entries(numbers).filter(([name]) => !allowed.has(name)));
    const answers = await ask<Record<string, number>>(
      await open(),
      `import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in arguments])
    return ctypes.get_errno() if result == -1 else 0
answer = {name: call(number, 0, 0, 0, 0, 0, 0) for name, number in ${JSON.stringify(refused)}.items()}
answer |= {"x32 getpid": call(0x40000000 + 39), "unknown": call(511), "clone NEWUSER": call(${numbers["clone"]}, 0x10000011, 0, 0, 0, 0), "socketpair INET": call(${numbers["socketpair"]}, 2, 1, 0, 0),
  "ioctl TIOCSTI": call(${numbers["ioctl"]}, 0, 0x5412, 0), "ioctl TIOCLINUX": call(${numbers["ioctl"]}, 0, 0x541c, 0), "prctl SECCOMP": call(${numbers["prctl"]}, 22, 0, 0, 0, 0), "mknod device": call(${numbers["mknodat"]}, -100, 0, 0o020666, 0)}`,
    );
    expect(Object.keys(refused).length).toBeGreaterThan(100);
    expect(Object.entries(answers).filter(([, errno]) => errno !== 1)).toEqual([]);
    const others = `import ctypes; l = ctypes.CDLL(None, use_errno=True); answer = [(l.syscall(n, 0, 0), ctypes.get_errno())[1] for n in ${JSON.stringify(answered.map((name) => numbers[name]))}]`;
    expect(await ask(await open(), others)).toEqual(answered.map(() => 38));
  });

  it("still runs threads, subprocesses, asyncio, multiprocessing, shared memory, fifos and pyarrow", async () => {
    const answer = await ask(
      await open(),
      `import asyncio, concurrent.futures, mmap, multiprocessing, multiprocessing.shared_memory, os, socket, subprocess, tempfile, threading, time
import pyarrow as pa, pyarrow.compute as pc
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    threads = sum(pool.map(abs, range(-100, 0)))
async def both():
    process = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.gather(process.communicate(), asyncio.sleep(0.01))
    return out[0].decode().strip()
with multiprocessing.get_context("fork").Pool(2) as pool:
    forked = pool.map(abs, [-1, -2])
segment = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
segment.buf[0] = 7
shared = segment.buf[0]
segment.close(); segment.unlink()
os.mkfifo("/tmp/fifo")
left, right = socket.socketpair()
left.send(b"x")
answer = [threads, asyncio.run(both()), forked, shared, subprocess.run(["/bin/sh", "-c", "echo $HOME"], capture_output=True, text=True).stdout.strip(),
  right.recv(1).decode(), len(mmap.mmap(-1, 1 << 20)), pc.sum(pa.array(range(1000))).as_py(), os.isatty(0), tempfile.mkdtemp().startswith("/tmp/")]`,
    );
    expect(answer).toEqual([5050, "hi", [1, 2], 7, "/sandbox", "x", MB, 499500, false, true]);
  });

  it("can write only to /sandbox, /tmp and /dev/shm, with one size limit for all three", async () => {
    const lease = await open({ scratchBytes: 32 * MB });
    const writable = await ask<string[]>(
      lease,
      `import os
answer = []
for directory, _, _ in os.walk("/"):
    if directory.startswith("/proc"): continue
    try:
        open(directory + "/probe", "w").close(); os.unlink(directory + "/probe"); answer.append(directory)
    except OSError: pass`,
    );
    expect(writable.filter((path) => !path.startsWith("/sandbox/")).toSorted()).toEqual(["/dev/shm", "/sandbox", "/tmp"]);
    const written = await ask<number>(
      lease,
      `import os
answer = 0
for path in ("/sandbox/a", "/tmp/b", "/dev/shm/c"):
    with open(path, "wb", buffering=0) as file:
        try:
            while True: answer += file.write(bytes(1 << 20))
        except OSError as error: assert error.errno == 28, error
for path in ("/sandbox/a", "/tmp/b", "/dev/shm/c"): os.unlink(path)`,
    );
    expect(written).toBeGreaterThan(24 * MB);
    expect(written).toBeLessThanOrEqual(32 * MB);
  });

  it("does not see the files that only the zygote needs", async () => {
    const listing = await ask(
      await open(),
      `import os
def tried(path):
    try: return os.listdir(path)
    except OSError as error: return error.errno
answer = [tried("/run"), tried("/sys"), sorted(os.listdir("/dev")), tried("/run/sluice"), tried("/run/cgroup"), oct(os.stat("/sandbox").st_mode), os.stat("/sandbox").st_uid]`,
    );
    expect(listing).toEqual([
      [],
      [],
      ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"],
      2,
      2,
      "0o40700",
      1000,
    ]);
  });

  it("has the limits it was opened with", async () => {
    const lease = await open({ openFiles: 100, memoryBytes: 512 * MB, scratchBytes: 64 * MB, inputBytes: 16 * MB });
    const limits = await ask<number[][]>(
      lease,
      "import resource as r\nanswer = [list(r.getrlimit(n)) for n in (r.RLIMIT_NOFILE, r.RLIMIT_CORE, r.RLIMIT_FSIZE)]",
    );
    const [[soft, hard], ...others] = limits as [[number, number], ...number[][]];
    expect(hard).toBe(100);
    expect(soft).toBeLessThanOrEqual(hard); // the worker keeps a few for itself while user code runs
    expect(others).toEqual([
      [0, 0],
      [64 * MB, 64 * MB],
    ]);
    const huge = await ask<string>(
      lease,
      "import numpy\ntry:\n    numpy.ones(1 << 30); answer = 'got it'\nexcept MemoryError:\n    answer = 'MemoryError'",
    );
    expect(huge).toBe("MemoryError");
  });
});

describe.each([
  ["a cgroup", true],
  ["the memory watcher, without a cgroup", false],
])("memory and processes limited by %s", (_, withCgroups) => {
  let limited: TestDriver;
  beforeAll(async () => {
    limited = await openTestDriver({ withCgroups });
    if (withCgroups && process.getuid?.() === 0) expect(limited.runDirectory.cgroups).toMatchObject({ available: true });
  }, 180_000);
  afterAll(async () => {
    await limited?.[Symbol.asyncDispose]();
  });

  it("a cell that uses too much is killed and counted, and the sandbox keeps its earlier variables", async () => {
    const lease = await open({ memoryBytes: 300 * MB, cellTimeoutMs: 60_000 }, limited);
    await runTestCell(lease, "kept = 41");
    await lease.resetPeak();
    const { end } = await runTestCell(
      lease,
      "import mmap, os\nheld = []\nwhile True:\n    part = mmap.mmap(-1, 1 << 24)\n    part.write(os.urandom(1) * (1 << 24))\n    held.append(part)",
    );
    expect(end).toMatchObject({ type: "ended", signal: 9 });
    const usage = await lease.usage();
    expect(usage.memoryKills).toBeGreaterThanOrEqual(1);
    expect(usage.peakMemoryBytes).toBeGreaterThan(200 * MB);
    expect(usage.cpuMs).toBeGreaterThan(0);
    expect(await ask(lease, "answer = kept + 1")).toBe(42);
  }, 180_000);

  it("a fork bomb stops at the process limit", async () => {
    const lease = await open({ processes: 20 }, limited);
    const forks = await ask<number>(
      lease,
      `import os, signal
answer, pids = 0, []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0: signal.pause()
        pids.append(pid); answer += 1
except BlockingIOError: pass
for pid in pids: os.kill(pid, 9); os.waitpid(pid, 0)`,
    );
    expect(forks).toBeGreaterThan(5);
    expect(forks).toBeLessThanOrEqual(20);
    expect(await ask(lease, "answer = 1")).toBe(1);
  }, 180_000);
});

describe("the end of a bubblewrap sandbox", () => {
  it("is reported as closed when the host closes it, also twice", async () => {
    const lease = await host.open();
    await Promise.all([lease.close(), lease.close()]);
    expect(await lease.died).toMatchObject({ cause: "closed" });
    await lease.close();
    await expect(lease.channel.send({ type: "hello" })).rejects.toMatchObject({ code: "SANDBOX_LOST" });
    expect((await lease.usage()).peakMemoryBytes).toBeGreaterThan(0);
  });

  it("is reported as killed when another process kills its first process", async () => {
    const lease = await host.open();
    const [init] = await sandboxInits();
    process.kill(init!, "SIGKILL");
    expect(await lease.died).toMatchObject({ cause: "killed", signal: "SIGKILL" });
    expect(await lease.channel.receive()).toBeNull();
  });

  it.each(["the zygote", "bwrap"])(
    "is reported as killed when %s is killed, and the next open starts a new zygote",
    async (victim) => {
      const own = await openTestDriver();
      onTestFinished(() => own[Symbol.asyncDispose]());
      const leases = [await own.open(), await own.open()];
      const tree = await listProcessTree([bwrapPid()]);
      process.kill(tree[victim === "bwrap" ? 0 : 1]!, "SIGKILL");
      for (const lease of leases) expect(await lease.died).toMatchObject({ cause: "killed", detail: expect.stringContaining("zygote") });
      await expect.poll(() => tree.filter(isRunning)).toEqual([]);
      const next = await own.open();
      expect(await ask(next, "answer = 2")).toBe(2);
    },
    180_000,
  );

  it("happens when the driver is closed", async () => {
    const own = await openTestDriver();
    const lease = await own.open();
    const tree = await listProcessTree([bwrapPid()]);
    await own[Symbol.asyncDispose]();
    expect(await lease.died).toMatchObject({ cause: "closed" });
    await expect.poll(() => tree.filter(isRunning)).toEqual([]);
    await expect(own.open()).rejects.toMatchObject({ code: "DRIVER_CLOSED" });
  }, 180_000);

  it("happens at once when the host is killed, with nothing left behind", async () => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("./fixtures/host.ts", import.meta.url))], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    expect(await firstLine(child)).toMatchObject({ uid: process.getuid?.() });
    const tree = await listProcessTree([child.pid!]);
    const sandboxes = tree.filter((pid) => commandLine(pid).includes("sluice_worker.zygote"));
    expect(sandboxes.length).toBeGreaterThanOrEqual(6); // bwrap, the zygote, and two or three for each sandbox
    child.kill("SIGKILL");
    await expect.poll(() => sandboxes.filter(isRunning), { timeout: 2_000, interval: 20 }).toEqual([]);
  }, 180_000);

  it("leaves nothing behind after fifty sandboxes and after aborted opens", async () => {
    await (await host.open()).close();
    await settle();
    const before = footprint();
    for (let round = 0; round < 10; round++) {
      const leases = await Promise.all(Array.from({ length: 5 }, () => host.open()));
      await Promise.all(leases.map((lease) => lease.close()));
    }
    for (const afterMs of [0, 5, 15]) {
      await expect(host.open({}, AbortSignal.timeout(afterMs))).rejects.toMatchObject({ name: "TimeoutError" });
    }
    await settle();
    expect(footprint()).toEqual(before);
  }, 180_000);
});

async function firstLine(child: ChildProcessByStdio<Writable, Readable, null>): Promise<unknown> {
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`The host ended with ${code} before it printed anything.`);
  });
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  ended.catch(() => {});
  return JSON.parse(line.toString());
}

/** The newest bwrap of this process. */
function bwrapPid(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "latin1").trim().split(" ").map(Number);
  return children.findLast((pid) => readFileSync(`/proc/${pid}/comm`, "latin1").trim() === "bwrap")!;
}

/** The first processes of all sandboxes of this file's first driver. */
async function sandboxInits(): Promise<number[]> {
  const children = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").filter(Boolean).map(Number);
  const bwrap = children(process.pid).find((pid) => readFileSync(`/proc/${pid}/comm`, "latin1").trim() === "bwrap")!;
  return children(children(bwrap)[0]!);
}

/** Empty when the process has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

function footprint(): Record<string, unknown> {
  const { cgroups, path } = host.runDirectory;
  const parents = !cgroups.available ? [] : cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent];
  const list = (directory: string): string[] => readdirSync(directory).toSorted();
  return {
    descriptors: list("/proc/self/fd").length,
    cgroups: parents.map((parent) =>
      list(parent)
        .filter((name) => name.includes(`sluice-${process.pid}-`))
        .map((name) => list(`${parent}/${name}`).filter((entry) => entry.startsWith("bw-") && !entry.startsWith("bw-keep"))),
    ),
    run: list(path),
    processes: readFileSync(`/proc/${bwrapPid()}/task/${bwrapPid()}/children`, "latin1"),
  };
}

/** Waits for the removal that close() leaves to the background. */
async function settle(): Promise<void> {
  await expect.poll(async () => (await sandboxInits()).length).toBe(0);
  await expect.poll(() => JSON.stringify(footprint()["cgroups"]).includes("bw-")).toBe(false);
  await sleep(50);
}
