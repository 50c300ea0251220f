import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../../src/create-runtime.ts";
import { workerEnvironment } from "../../src/sandbox/worker-environment.ts";
import { openTestRuntime, testedDrivers } from "../test-runtime.ts";
import { openAttackedCellSession, type AttackedCellSession } from "./attacked-cell-session.ts";
import { openHostTraps, type HostTraps } from "./host-traps.ts";

/** An entry that is not listed, for example of a newer kernel, fails the test. What gVisor shows is about the sandbox: it has its own /proc and /sys. */
const readableEntries: Record<string, { readonly "/proc": readonly string[]; readonly "/sys": readonly string[] }> = {
  gvisor: {
    "/proc": words(
      "cgroups cmdline cpuinfo filesystems loadavg meminfo mounts net self sentry-meminfo stat sys thread-self uptime version",
    ),
    "/sys": words("class devices fs"),
  },
  bubblewrap: { "/proc": ["self", "thread-self"], "/sys": [] },
};

function words(text: string): string[] {
  return text.split(" ");
}

/** Escape tests: files, environment and processes of the host and of other sandboxes. */
describe.each(testedDrivers)("%s", (driver) => {
  let traps: HostTraps;
  let runtime: Runtime;
  let cellSession: AttackedCellSession;

  beforeAll(async () => {
    traps = await openHostTraps();
    runtime = openTestRuntime(driver);
    cellSession = await openAttackedCellSession(runtime, traps);
  }, 120_000);

  afterAll(async () => {
    await runtime?.close();
    await traps?.[Symbol.asyncDispose]();
  }, 30_000);

  it("of /proc and /sys, nothing can be read but what is listed here", async () => {
    const outcome = await cellSession.run(`
import os
def is_readable(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        with open(path, "rb", buffering=0) as file:
            os.set_blocking(file.fileno(), False)
            file.read(1)
        return True
    except BlockingIOError:
        return True
    except OSError:
        return False
set_result({place: sorted(name for name in os.listdir(place) if not name.isdigit() and is_readable(f"{place}/{name}")) for place in ("/proc", "/sys")})
`);
    expect(outcome.error).toBeUndefined();
    expect(JSON.parse(outcome.resultJson!)).toEqual(readableEntries[driver.replace("-rootless", "")]);
    await cellSession.expectIntact();
  });

  it("the host's files cannot be read through any path", async () => {
    const { rootfs } = await runtime.snapshot();
    const own = path.resolve(import.meta.filename);
    await cellSession.expectAllRefused(
      `
SECRET = ${JSON.stringify(traps.secretFile)}
attempt("by its path", read_from, SECRET)
attempt("up from scratch", read_from, "/sandbox" + "/.." * 20 + SECRET)
attempt("through /proc/1/root", read_from, "/proc/1/root" + SECRET)
attempt("through /proc/1/cwd", read_from, "/proc/1/cwd" + "/.." * 20 + SECRET)
attempt("through /proc/self/root", read_from, "/proc/self/root/.." + SECRET)
os.symlink(SECRET, "/sandbox/link")
attempt("through a symlink", read_from, "/sandbox/link")
os.symlink("/" + "../" * 20, "/sandbox/up")
attempt("through a symlink upwards", read_from, "/sandbox/up" + SECRET)
attempt("with a hard link", os.link, SECRET, "/sandbox/hard")
attempt("this very test", read_from, ${JSON.stringify(own)})
attempt("the snapshot from outside", read_from, ${JSON.stringify(path.join(rootfs, "etc/passwd"))})
attempt("the home of root", os.listdir, "/root/.ssh")
attempt("passwords", read_from, "/etc/shadow")
attempt("memory of the kernel", read_from, "/proc/kcore")
attempt("physical memory", read_from, "/dev/mem")
attempt("messages of the kernel", read_from, "/dev/kmsg")
attempt("messages of the kernel, by call", call, "syslog", 3, ctypes.create_string_buffer(4096), 4096)
attempt("a file handle", call, "open_by_handle_at", -100, b"\\0" * 64, 0)
`,
      [
        "by its path",
        "up from scratch",
        "through /proc/1/root",
        "through /proc/1/cwd",
        "through /proc/self/root",
        "through a symlink",
        "through a symlink upwards",
        "with a hard link",
        "this very test",
        "the snapshot from outside",
        "the home of root",
        "passwords",
        "memory of the kernel",
        "physical memory",
        "messages of the kernel",
        "messages of the kernel, by call",
        "a file handle",
      ],
    );
    await cellSession.expectIntact();
  });

  it("a walk over all visible files finds none of the host's", async () => {
    const outcome = await cellSession.run(`
import os
seen = []
for directory, names, files in os.walk("/"):
    if directory in ("/proc", "/sys", "/usr"):
        names[:] = []
    seen += [os.path.join(directory, name) for name in files + names]
seen += os.listdir("/")
print("\\n".join(seen))
set_result([sorted(os.listdir("/")), os.listdir("/run"), sorted(name for name in os.listdir("/home"))])
`);
    expect(outcome.status).toBe("ok");
    expect(outcome.stdout).not.toContain(path.basename(traps.directory));
    expect(outcome.stdout).not.toMatch(/sluice-\d+\/|leases\.sock|cgroup\.procs/);
    const [top, run, home] = JSON.parse(outcome.resultJson!) as string[][];
    const usual = new Set(
      "bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sandbox sbin srv sys tmp usr var vercel".split(" "),
    );
    expect(top!.filter((name) => !usual.has(name))).toEqual([]);
    expect([run, home]).toEqual([[], []]);
    await cellSession.expectIntact();
  });

  it("the environment is the fixed list and contains nothing from the host", async () => {
    const outcome = await cellSession.run(`
import os
found = {**os.environ}
for name in os.listdir("/proc"):
    for file in ("environ", "cmdline"):
        try:
            found[f"{name}/{file}"] = open(f"/proc/{name}/{file}", "rb").read().decode(errors="replace")
        except OSError:
            pass
found["getenv"] = os.getenv(${JSON.stringify(traps.secretVariable)})
set_result(found)
`);
    expect(outcome.status).toBe("ok");
    const found = JSON.parse(outcome.resultJson!) as Record<string, string | null>;
    expect(JSON.stringify(found)).not.toContain(traps.secretVariable);
    expect(found.getenv).toBeNull();
    const given = Object.entries(found).filter(([name]) => !name.includes("/") && name !== "getenv" && name !== "PWD");
    expect(Object.fromEntries(given)).toEqual(workerEnvironment);
    expect(found.PWD ?? "/sandbox").toMatch(/^\/(sandbox)?$/);
    await cellSession.expectIntact();
  });

  it("the host's processes can neither be seen nor signalled", async () => {
    const pids = [traps.process.pid, process.pid, process.ppid];
    const outcome = await cellSession.run(`
import os, signal
mine = {int(name) for name in os.listdir("/proc") if name.isdigit()}
names = {pid: open(f"/proc/{pid}/comm").read().strip() for pid in mine}
reached = []
for pid in ${JSON.stringify(pids)}:
    if pid in mine:
        continue  # a number of our own by chance
    for what in (lambda: os.kill(pid, signal.SIGKILL), lambda: os.killpg(pid, signal.SIGKILL), lambda: os.listdir(f"/proc/{pid}"), lambda: os.pidfd_open(pid), lambda: os.getpgid(pid)):
        try:
            what()
            reached.append(pid)
        except OSError:
            pass
set_result({"reached": reached, "names": sorted(set(names.values())), "count": len(mine)})
`);
    expect(outcome.status).toBe("ok");
    const { reached, names, count } = JSON.parse(outcome.resultJson!) as { reached: number[]; names: string[]; count: number };
    expect(reached).toEqual([]);
    expect(names).toEqual(["python3"]);
    expect(count).toBeLessThanOrEqual(8); // the worker's own: process 1, the monitor, its cells, and those that are just ending
    expect(traps.process.isAlive()).toBe(true);
    await cellSession.expectIntact();
  });

  it("the memory of process 1 cannot be read or written", async () => {
    await cellSession.expectAllRefused(
      `
def open_for(path, flags):
    os.close(os.open(path, flags))
attempt("reading its memory", open_for, "/proc/1/mem", os.O_RDONLY)
attempt("writing its memory", open_for, "/proc/1/mem", os.O_RDWR)
attempt("its stack", read_from, "/proc/1/syscall")
attempt("process_vm_readv", call, "process_vm_readv", 1, None, 0, None, 0, 0)
attempt("process_vm_writev", call, "process_vm_writev", 1, None, 0, None, 0, 0)
attempt("taking a descriptor", lambda: call("pidfd_getfd", os.pidfd_open(1), 3, 0))
attempt("ptrace", call, "ptrace", 16, 1, None, None)
attempt("ptrace seize", call, "ptrace", 0x4206, 1, None, None)
attempt("kcmp", call, "kcmp", 1, os.getpid(), 0, 0, 0)
`,
      [
        "reading its memory",
        "writing its memory",
        "its stack",
        "process_vm_readv",
        "process_vm_writev",
        "taking a descriptor",
        "ptrace",
        "ptrace seize",
        "kcmp",
      ],
    );
    await cellSession.expectIntact();
  });

  it("process 1 reveals nothing useful about itself", async () => {
    if (driver === "bubblewrap") {
      await cellSession.expectAllRefused(
        `
attempt("its environment", read_from, "/proc/1/environ")
attempt("its maps", read_from, "/proc/1/maps")
attempt("its descriptors", os.listdir, "/proc/1/fd")
attempt("its oom score", write_to, "/proc/1/oom_score_adj", b"1000")
`,
        ["its environment", "its maps", "its descriptors", "its oom score"],
      );
    } else {
      // gVisor shows these to every process of the same user, dumpable or not. It does not show the memory; see the test above.
      const outcome = await cellSession.run(
        "set_result(dict(pair.split('=', 1) for pair in open('/proc/1/environ').read().split('\\0') if pair))",
      );
      expect(JSON.parse(outcome.resultJson!)).toEqual(workerEnvironment);
    }
    await cellSession.expectIntact();
  });

  it("the channel cannot be opened through process 1, and writing to descriptors that can be opened forges nothing", async () => {
    const outcome = await cellSession.run(`
import json, os, stat, struct
head = json.dumps({"type": "done", "cell": 1, "status": "ok"}).encode()
forged = struct.pack(">III", 0x534C5501, len(head), 6) + head + b'"fake"'
opened = []
for fd in range(64):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        try:
            mine = os.open(f"/proc/1/fd/{fd}", flags | os.O_NONBLOCK)
        except OSError:
            continue
        kind = os.fstat(mine).st_mode
        if stat.S_ISSOCK(kind):
            opened.append(os.readlink(f"/proc/1/fd/{fd}"))
        try:
            os.write(mine, forged)
        except OSError:
            pass
        os.close(mine)
set_result(opened)
`);
    expect(outcome.error).toBeUndefined();
    expect(outcome.resultJson).toBe("[]");
    await cellSession.expectIntact();
  });

  it("nothing outside scratch can be written, including the snapshot", async () => {
    const { rootfs } = await runtime.snapshot();
    const before = await Promise.all([traps.files(), stat(rootfs), stat(path.join(rootfs, "etc"))]);
    const targets = [
      "/x",
      "/etc/x",
      "/usr/x",
      "/usr/bin/python3",
      "/etc/passwd",
      "/root/x",
      "/home/x",
      "/var/x",
      "/var/tmp/x",
      "/run/x",
      "/dev/x",
      "/sys/x",
      "/proc/x",
      "/opt/x",
    ];
    const settings = [
      "kernel/core_pattern",
      "kernel/modprobe",
      "kernel/hostname",
      "kernel/randomize_va_space",
      "vm/overcommit_memory",
      "net/ipv4/ip_forward",
      "fs/file-max",
    ];
    await cellSession.expectAllRefused(
      `
import sluice_worker.monitor, json as json_module
for path in ${JSON.stringify(targets)}:
    attempt(path, write_to, path)
for name in ${JSON.stringify(settings)}:
    attempt(name, write_to, f"/proc/sys/{name}", b"1")
attempt("sysrq", write_to, "/proc/sysrq-trigger", b"b")
attempt("the worker's code", write_to, sluice_worker.monitor.__file__)
attempt("a library's code", write_to, json_module.__file__)
attempt("replacing a library", os.replace, "/sandbox", os.path.dirname(json_module.__file__))
attempt("removing the worker's code", os.unlink, sluice_worker.monitor.__file__)
attempt("chmod", os.chmod, "/usr/bin/python3", 0o4777)
attempt("through /proc/self/root", write_to, "/proc/self/root/etc/x")
attempt("through /proc/self/exe", write_to, "/proc/self/exe")
attempt("the host's directory", write_to, ${JSON.stringify(path.join(traps.directory, "escaped"))})
attempt("own uid map", write_to, "/proc/self/uid_map", b"0 0 1")
attempt("own cgroup", write_to, "/sys/fs/cgroup/cgroup.procs", b"0")
read_from(sluice_worker.monitor.__file__)  # reading it is no secret
`,
      [
        ...targets,
        ...settings,
        "sysrq",
        "the worker's code",
        "a library's code",
        "replacing a library",
        "removing the worker's code",
        "chmod",
        "through /proc/self/root",
        "through /proc/self/exe",
        "the host's directory",
        "own uid map",
        "own cgroup",
      ],
    );
    const after = await Promise.all([traps.files(), stat(rootfs), stat(path.join(rootfs, "etc"))]);
    expect(after[0]).toEqual(before[0]);
    expect([after[1].mtimeMs, after[2].mtimeMs]).toEqual([before[1].mtimeMs, before[2].mtimeMs]);
    await cellSession.expectIntact();
  });

  it("file names with symlinks, dots, newlines, control characters and invalid UTF-8 are only names", async () => {
    const outcome = await cellSession.run(`
import os
names = [b"..%2f..%2fescaped", b"a\\nb", b"\\x1b[2Jred", b"\\xff\\xfe", b"-rf", b"$(touch escaped)", "\\u202egnp.exe".encode(), b"x" * 255, b"con", b"{}", b'"quote']
for name in names:
    with open(b"/sandbox/out/images/" + name, "wb") as file:
        file.write(b"x")
os.symlink("/etc/passwd", "/sandbox/out/images/passwd.png")
os.symlink(${JSON.stringify(path.join(traps.directory, "escaped"))}, "/sandbox/out/images/outside")
os.symlink("loop", "/sandbox/out/images/loop")
os.mkfifo("/sandbox/out/images/fifo")
deep = "/sandbox"
for _ in range(200):
    deep += "/d"
    os.mkdir(deep)
raise RuntimeError("so that the changed files are listed")
`);
    expect(outcome.status).toBe("python_error");
    expect(outcome.error?.type).toBe("RuntimeError");
    expect(await traps.files()).toEqual(["secret.txt", "socket"]);
    expect(outcome.artifacts).toEqual([]);
    for (const name of (outcome.diagnostics.scratchChanged as string[] | undefined) ?? [])
      expect(path.isAbsolute(name) || name.startsWith("..")).toBe(false);
    await cellSession.expectTruthful();
  });

  it("figures with hostile file names are returned as bytes without a path", async () => {
    const outcome = await cellSession.run(`
fig, ax = plt.subplots()
ax.plot([1, 2], [3, 4])
save_figure("../../escaped line", title="../../../etc/cron.d/x\\n\\x1b]0;owned\\x07")
`);
    expect(outcome.status).toBe("ok");
    expect(outcome.artifacts).toHaveLength(1);
    expect(Object.keys(outcome.artifacts[0]!)).not.toContain("path");
    expect(await traps.files()).toEqual(["secret.txt", "socket"]);
    await cellSession.expectTruthful();
  });

  it("only harmless devices exist, and none can be created", async () => {
    const outcome = await cellSession.run(`
import os, stat
found = {}
for directory, names, files in os.walk("/dev"):
    for name in files:
        path = os.path.join(directory, name)
        info = os.stat(path) if os.path.exists(path) else os.lstat(path)
        if stat.S_ISBLK(info.st_mode) or stat.S_ISCHR(info.st_mode):
            try:
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
                found[os.path.realpath(path)] = "opened"
            except OSError as error:
                found[path] = "refused"
set_result(sorted(path for path, how in found.items() if how == "opened"))
`);
    expect(outcome.status).toBe("ok");
    const harmless = new Set(["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"]);
    // gVisor's /dev always has these. No device of the host is behind them, and the attempts below show that they are useless.
    const emulated = driver !== "bubblewrap" ? ["/dev/fuse", "/dev/net/tun", "/dev/ptmx", "/dev/pts/ptmx"] : [];
    expect((JSON.parse(outcome.resultJson!) as string[]).filter((name) => !harmless.has(name) && !emulated.includes(name))).toEqual([]);
    await cellSession.expectAllRefused(
      `
import stat
attempt("a block device", os.mknod, "/sandbox/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
attempt("a character device", os.mknod, "/sandbox/mem", stat.S_IFCHR | 0o600, os.makedev(1, 1))
attempt("a device by raw call", call, "mknodat", -100, b"/sandbox/raw", stat.S_IFBLK | 0o600, os.makedev(8, 0))
attempt("TIOCSTI", call, "ioctl", 0, 0x5412, b"x")
attempt("TIOCLINUX", call, "ioctl", 1, 0x541c, b"\\x02")
attempt("a new terminal", os.openpty)
attempt("a network interface", lambda: call("ioctl", os.open("/dev/net/tun", os.O_RDWR), 0x400454CA, b"tun0" + b"\\0" * 12 + b"\\x01\\0" + b"\\0" * 22))
attempt("a file system of one's own", lambda: os.read(os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK), 8192))
`,
      [
        "a block device",
        "a character device",
        "a device by raw call",
        "TIOCSTI",
        "TIOCLINUX",
        "a new terminal",
        "a network interface",
        "a file system of one's own",
      ],
    );
    await cellSession.expectIntact();
  });

  it("the files, memory and processes of another sandbox are out of reach, and it continues undisturbed", async () => {
    await using neighbour = await openAttackedCellSession(runtime, traps);
    const made = await neighbour.run(`
import mmap, os
secret = "-".join(["neighbours", "own", "secret"]) * 1000
for place in ("/sandbox", "/tmp", "/dev/shm"):
    with open(place + "/neighbour", "w") as file:
        file.write(secret)
memory = os.memfd_create("neighbour")
os.write(memory, secret.encode())
from multiprocessing import shared_memory
block = shared_memory.SharedMemory("neighbour-block", create=True, size=4096)
block.buf[:8] = b"untaken!"
`);
    expect(made.error).toBeUndefined();
    const outcome = await cellSession.run(`
import ctypes, os, re, signal
needle = "-".join(["secret" + "neighbours", "own", "secret" + "neighbours"]).encode()
found = []
for place in ("/sandbox", "/tmp", "/dev/shm"):
    found += [f"{place}/{name}" for name in os.listdir(place) if "neighbour" in name]
for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
    for fd in range(64):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if "neighbour" in target:
            found.append(target)
fresh = np.empty(64 << 20, dtype=np.uint8)
if needle in fresh.data.tobytes():
    found.append("pages that were the neighbour's")
mine = {int(thread) for name in os.listdir("/proc") if name.isdigit() for thread in os.listdir(f"/proc/{name}/task")}
for pid in range(2, 3000):
    if pid in mine:
        continue
    try:
        os.kill(pid, signal.SIGKILL)
        found.append(f"process {pid}")
    except OSError:
        pass
from multiprocessing import shared_memory
try:
    found.append(bytes(shared_memory.SharedMemory("neighbour-block").buf[:8]).decode())
except FileNotFoundError:
    pass
set_result(found)
`);
    expect(outcome.error).toBeUndefined();
    expect(outcome.resultJson).toBe("[]");
    await cellSession.expectAllRefused(
      `
attempt("shared memory", call, "shmget", 0x534c55, 4096, 0o1666)
attempt("a semaphore", call, "semget", 0x534c55, 1, 0o1666)
attempt("a message queue", call, "msgget", 0x534c55, 0o1666)
attempt("a POSIX message queue", call, "mq_open", b"neighbour", os.O_RDWR | os.O_CREAT, 0o666, None)
`,
      ["shared memory", "a semaphore", "a message queue", "a POSIX message queue"],
    );
    await cellSession.expectIntact();
    await neighbour.expectIntact();
    const still = await neighbour.run("[open('/sandbox/neighbour').read() == secret, bytes(block.buf[:8]).decode()]");
    expect(still.resultJson).toBe('[true,"untaken!"]');
  });

  it("a sandbox leaves nothing that the next one can find", async () => {
    const first = await openAttackedCellSession(runtime, traps);
    await first.run("for place in ('/sandbox', '/tmp', '/dev/shm'):\n    open(place + '/left-over', 'w').write('left')");
    await first[Symbol.asyncDispose]();
    await using second = await openAttackedCellSession(runtime, traps);
    const outcome = await second.run("import os\n[os.path.exists(place + '/left-over') for place in ('/sandbox', '/tmp', '/dev/shm')]");
    expect(outcome.resultJson).toBe("[false,false,false]");
    await second.expectIntact();
  });

  it("the host's secret is unchanged after all attacks", async () => {
    expect(await readFile(traps.secretFile, "utf8")).toBe(traps.secret);
    expect(traps.process.isAlive()).toBe(true);
  });
});
