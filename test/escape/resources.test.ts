import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../../src/create-runtime.ts";
import type { SandboxLimits } from "../../src/sandbox/contract.ts";
import { openTestRuntime, testedDrivers } from "../test-runtime.ts";
import { openAttackedCellSession, type AttackedCellSession } from "./attacked-cell-session.ts";
import { openHostTraps, type HostTraps } from "./host-traps.ts";

const MB = 1024 * 1024;
/** Memory that a driver may use itself: gVisor's kernel is in the same cgroup. */
const ENGINE_BYTES = 160 * MB;
const small: Partial<SandboxLimits> = {
  memoryBytes: 448 * MB,
  processes: 24,
  openFiles: 128,
  cellTimeoutMs: 3_000,
  stdoutBytes: 64 * 1024,
  stderrBytes: 64 * 1024,
};
const roomy: Partial<SandboxLimits> = { ...small, cellTimeoutMs: 20_000 };

/** Escape tests: every resource of a sandbox is limited, and reaching a limit harms only the cell. */
describe.each(testedDrivers)("%s", (driver) => {
  let traps: HostTraps;
  let runtime: Runtime;
  let cellSession: AttackedCellSession;
  let hurried: AttackedCellSession;

  beforeAll(async () => {
    traps = await openHostTraps();
    runtime = openTestRuntime(driver);
    cellSession = await openAttackedCellSession(runtime, traps, roomy);
    hurried = await openAttackedCellSession(runtime, traps, small);
  }, 120_000);

  afterAll(async () => {
    await runtime?.close();
    await traps?.[Symbol.asyncDispose]();
  }, 30_000);

  it("scratch can be filled to its limit and no further, over all its directories together", async () => {
    const scratchBytes = 32 * MB;
    await using own = await openAttackedCellSession(runtime, traps, { ...roomy, scratchBytes });
    const outcome = await own.run(`
import errno, os
block = b"x" * (1 << 20)
written, refused = 0, []
for place in ("/sandbox", "/tmp", "/dev/shm"):
    with open(place + "/fill", "wb", buffering=0) as file:
        for _ in range(256):
            try:
                written += file.write(block)
            except OSError as error:
                refused.append(errno.errorcode[error.errno])
                break
set_result({"written": written, "refused": refused})
`);
    expect(outcome.error).toBeUndefined();
    const { written, refused } = JSON.parse(outcome.resultJson!) as { written: number; refused: string[] };
    expect(refused).toEqual(["ENOSPC", "ENOSPC", "ENOSPC"]);
    expect(written).toBeLessThanOrEqual(scratchBytes);
    await own.expectIntact();
    const freed = await own.run(
      "import os\nfor place in ('/sandbox', '/tmp', '/dev/shm'):\n    os.unlink(place + '/fill')\nopen('/sandbox/again', 'wb').write(b'x' * 1000000)",
    );
    expect([freed.status, freed.resultJson]).toEqual(["ok", "1000000"]);
  }, 90_000);

  it("a huge sparse file uses no space", async () => {
    const outcome = await cellSession.run(`
import os
how = []
for size in (1 << 40, 1 << 62):
    try:
        with open("/sandbox/sparse", "wb") as file:
            file.truncate(size)
        how.append("made")
    except OSError:
        how.append("refused")
fd = os.open("/sandbox/sparse", os.O_RDWR | os.O_CREAT)
try:
    os.posix_fallocate(fd, 0, 1 << 40)
    how.append("allocated")
except OSError:
    how.append("refused")
os.close(fd)
os.unlink("/sandbox/sparse")
how[-1]
`);
    expect([outcome.error, outcome.resultJson]).toEqual([undefined, '"refused"']);
    await cellSession.expectIntact();
  });

  it("a fork bomb stops at the process limit and ends with its cell", async () => {
    await using own = await openAttackedCellSession(runtime, traps, { ...small, memoryBytes: 2048 * MB });
    const outcome = await own.run(`
import os, signal
for number in range(1, 64):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
`);
    expect(outcome.status).toBe("timeout");
    await own.expectTruthful();
    const left = await own.run("import os\nlen([name for name in os.listdir('/proc') if name.isdigit()])");
    expect(Number(left.resultJson)).toBeLessThanOrEqual(5); // the worker's own
  }, 60_000);

  it("no more processes can be started than the limit allows", async () => {
    await using own = await openAttackedCellSession(runtime, traps, { ...roomy, memoryBytes: 2048 * MB });
    const outcome = await own.run(`
import os, signal
children = []
for _ in range(500):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        signal.pause()
    children.append(child)
for child in children:
    os.kill(child, signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
len(children)
`);
    expect(outcome.error).toBeUndefined();
    expect(Number(outcome.resultJson)).toBeGreaterThan(4);
    expect(Number(outcome.resultJson)).toBeLessThanOrEqual(small.processes!);
    await own.expectTruthful();
  }, 60_000);

  it("a thread bomb stops at the process limit", async () => {
    const outcome = await cellSession.run(`
import threading
done = threading.Event()
threads = []
try:
    for _ in range(2000):
        thread = threading.Thread(target=done.wait, daemon=True)
        thread.start()
        threads.append(thread)
except RuntimeError:
    pass
done.set()
for thread in threads:
    thread.join()
len(threads)
`);
    expect(outcome.error).toBeUndefined();
    expect(Number(outcome.resultJson)).toBeGreaterThan(4);
    expect(Number(outcome.resultJson)).toBeLessThanOrEqual(small.processes!);
    await cellSession.expectTruthful();
  }, 60_000);

  const bombs: Record<string, string> = {
    "a list that grows": "hoard = []\nwhile True:\n    hoard.append(' ' * (1 << 20) + str(len(hoard)))",
    "numpy arrays": "hoard = []\nwhile True:\n    hoard.append(np.ones(1 << 20))",
    "one giant array": "np.ones(1 << 34)",
    "anonymous maps":
      "import mmap\nhoard = []\nwhile True:\n    hoard.append(mmap.mmap(-1, 1 << 24))\n    for page in range(0, 1 << 24, 4096):\n        hoard[-1][page] = 1",
    "files without a name":
      "import os\nhoard = []\nblock = b'x' * (1 << 20)\nwhile True:\n    fd = os.memfd_create('hoard')\n    for _ in range(64):\n        os.write(fd, block)",
  };
  it.each(Object.keys(bombs))(
    "a memory bomb of %s is stopped at the limit and reported as out of memory",
    async (name) => {
      const outcome = await cellSession.run(bombs[name]!);
      expect(outcome).toMatchObject({ status: "out_of_memory", error: { limit: { name: "memoryBytes", allowed: small.memoryBytes } } });
      expect(outcome.usage.peakMemoryBytes).toBeLessThanOrEqual(small.memoryBytes! + ENGINE_BYTES);
      await cellSession.expectTruthful();
    },
    60_000,
  );

  it("memory is counted over all processes of a sandbox", async () => {
    const outcome = await cellSession.run(`
import os, signal
children = []
for _ in range(16):
    child = os.fork()
    if child == 0:
        hoard = np.ones(8 << 20)
        signal.pause()
    children.append(child)
_, status = os.wait()
for child in children:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
set_result(os.WTERMSIG(status))
`);
    // The kernel may kill one of the children, which the cell can survive, or the driver may kill the whole sandbox.
    expect([outcome.status, outcome.resultJson]).toEqual(outcome.status === "ok" ? ["ok", "9"] : ["out_of_memory", null]);
    expect(outcome.usage.peakMemoryBytes).toBeLessThanOrEqual(small.memoryBytes! + ENGINE_BYTES);
    await cellSession.expectTruthful();
  }, 60_000);

  it("a cell that opens too many descriptors gets an error at the limit, and the next cell has its own", async () => {
    const outcome = await cellSession.run(`
import errno, os
taken = []
try:
    for _ in range(100_000):
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    how = errno.errorcode[error.errno]
fds = taken
set_result([how, len(taken)])
`);
    expect(outcome.error).toBeUndefined();
    const [how, count] = JSON.parse(outcome.resultJson!) as [string, number];
    expect(how).toBe("EMFILE");
    expect(count).toBeLessThanOrEqual(small.openFiles!);
    await cellSession.expectTruthful();
    const figure = await cellSession.run(
      "for fd in globals().get('fds', []):\n    os.close(fd)\nfig, ax = plt.subplots()\nax.plot([1, 2], [3, 4])\nsave_figure('a line that rises from three to four')",
    );
    expect([figure.error, figure.artifacts.length]).toEqual([undefined, 1]);
  }, 60_000);

  it("descriptors that are sent to the monitor do not accumulate there", async () => {
    const outcome = await cellSession.run(`
import array, json, os, socket, stat, struct
ours = next(int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}") and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode))
channel = socket.socket(fileno=os.dup(ours))
null = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", null))]
chart = b'{"spec": {}, "data": {}}'
head = json.dumps({"type": "artifact", "cell": 1, "kind": "chart"}).encode()
frame = struct.pack(">III", 0x534C5501, len(head), len(chart)) + head + chart
for position in range(len(frame) - 1):
    channel.sendmsg([frame[position:position + 1]], rights)
raise RuntimeError("the frame is never finished")
`);
    expect(["python_error", "sandbox_lost"]).toContain(outcome.status);
    await cellSession.expectTruthful();
    await cellSession.expectTruthful();
  }, 60_000);

  it("an endless loop that catches every exception is stopped on time", async () => {
    const outcome = await hurried.run(`
import faulthandler, signal, sys
for number in range(1, 64):
    try:
        signal.signal(number, lambda *_: None)
    except (OSError, ValueError):
        pass
sys.setrecursionlimit(10 ** 6)
while True:
    try:
        while True:
            pass
    except BaseException:
        continue
    finally:
        continue
`);
    expect(outcome).toMatchObject({ status: "timeout", error: { limit: { name: "cellTimeoutMs", allowed: small.cellTimeoutMs } } });
    expect(outcome.timing.runMs).toBeLessThan(small.cellTimeoutMs! + 4_000);
    await hurried.expectTruthful();
  }, 60_000);

  it("a loop in C that ignores signals is stopped on time", async () => {
    const outcome = await hurried.run("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')");
    expect(outcome.status).toBe("timeout");
    await hurried.expectTruthful();
  }, 60_000);

  it("a flood of output is cut to its limit while the cell continues", async () => {
    const outcome = await cellSession.run(`
import os, sys
for fd in (1, 2):
    for _ in range(512):
        os.write(fd, b"y" * 65536)
print("the end")
set_result("done")
`);
    expect([outcome.status, outcome.resultJson]).toEqual(["ok", '"done"']);
    for (const stream of ["stdout", "stderr"] as const) {
      expect(outcome[stream].length).toBeLessThanOrEqual(small.stdoutBytes! + 200);
      expect(outcome.truncated?.[stream]?.omittedBytes).toBeGreaterThan(31 * MB);
    }
    expect(outcome.stdout.endsWith("the end\n")).toBe(true);
    await cellSession.expectIntact();
  }, 60_000);

  it("an endless flood of output ends at the cell's timeout and keeps no more than its limit", async () => {
    const outcome = await hurried.run(
      "import os\nos.set_blocking(1, False)\nwhile True:\n    try:\n        os.write(1, b'z' * 65536)\n    except BaseException:\n        pass",
    );
    expect(outcome.status).toBe("timeout");
    expect(outcome.stdout.length).toBeLessThanOrEqual(small.stdoutBytes! + 200);
    await hurried.expectTruthful();
  }, 60_000);

  const floods: Record<string, [code: string, statuses: string[]]> = {
    "a last expression over the result limit": ["'r' * (11 << 20)", ["ok", "output_limit"]],
    "set_result over the result limit": ["set_result('r' * (11 << 20))", ["output_limit", "python_error"]],
    "too many figures": [
      "for number in range(30):\n    fig, ax = plt.subplots(figsize=(1, 1))\n    ax.plot([1, number])\n    save_figure(f'a line that ends at {number}')\n    plt.close(fig)",
      ["output_limit", "contract_violation"],
    ],
    "an exception with a giant message": ["raise RuntimeError('m' * (8 << 20))", ["python_error"]],
    "an exception that fails to describe itself": [
      "class Evil(Exception):\n    def __str__(self):\n        raise SystemExit\n    __repr__ = __str__\nraise Evil()",
      ["python_error"],
    ],
    "an endless recursion": ["def deeper():\n    return deeper()\ndeeper()", ["python_error"]],
    "a crash of the interpreter": ["import ctypes\nctypes.string_at(0)", ["crashed"]],
    "a silent exit": ["import os\nos._exit(0)", ["crashed"]],
    "an exit": ["raise SystemExit(0)", ["python_error"]],
    "an interrupt of itself": ["raise KeyboardInterrupt", ["python_error"]],
    "a null byte in the code": ["x = 1\0", ["python_error"]],
    "a syntax tree that is too deep": ["(".repeat(5000) + ")".repeat(5000), ["python_error", "out_of_memory"]],
  };
  it.each(Object.keys(floods))(
    "%s fails the cell and is reported correctly",
    async (name) => {
      const [code, statuses] = floods[name]!;
      const outcome = await cellSession.run(code);
      expect(statuses).toContain(outcome.status);
      expect(JSON.stringify({ ...outcome, artifacts: [] }).length).toBeLessThan(2 * MB);
      if (outcome.status !== "ok") expect(outcome.artifacts).toEqual([]);
      await cellSession.expectTruthful();
    },
    60_000,
  );
});
