import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../../src/create-runtime.ts";
import { syscallNumbers } from "../../src/sandbox/seccomp/syscall-numbers.ts";
import { openTestRuntime, testedDrivers } from "../test-runtime.ts";
import { openAttackedCellSession, type AttackedCellSession } from "./attacked-cell-session.ts";
import { openHostTraps, untouched, type HostTraps } from "./host-traps.ts";

/** Escape tests: privileges, namespaces and rarely used parts of the kernel. */
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

  it("files cannot be leased or watched, sockets cannot run filters, and other ways to disturb neighbours or to signal to them are refused", async () => {
    const hasOwnKernel = driver !== "bubblewrap";
    const commands = {
      lease: [1024, 0],
      "get lease": [1025, 0],
      notify: [1026, 1 << 31],
      "larger pipe": [1031, 1 << 20],
      owner: [8, 1],
      signal: [10, 34],
    };
    const options = {
      "attach filter": 26,
      "detach filter": 27,
      "lock filter": 44,
      "attach BPF": 50,
      "reuseport filter": 51,
      "reuseport BPF": 52,
    };
    await cellSession.expectAllRefused(
      `
import fcntl
pipe, _ = os.pipe()
shared = os.open("/usr/lib/os-release", os.O_RDONLY)
directory = os.open("/usr/lib", os.O_RDONLY | os.O_DIRECTORY)
own = os.open("/sandbox/leased", os.O_RDWR | os.O_CREAT)
for name, (command, argument) in ${JSON.stringify(commands)}.items():
    for where, fd in (("shared file", shared), ("shared directory", directory), ("own file", own), ("pipe", pipe)):
        attempt(f"{name}: {where}", call, "fcntl", fd, command, argument)
left, _ = socket.socketpair()
program = (ctypes.c_uint16 * 4)(0x06, 0, 0, 0)
for name, option in ${JSON.stringify(options)}.items():
    attempt(name, call, "setsockopt", left.fileno(), 1, option, struct.pack("HxxxxxxP", 1, ctypes.addressof(program)), 16)
for where, fd in (("shared file", shared), ("own file", own)):
    attempt(f"open file description lock: {where}", call, "fcntl", fd, 37, struct.pack("hhqqi", 0, 0, 0, 1, 0))
attempt("pages in memory", call, "mincore", 0, 0, 0)
if not ${hasOwnKernel ? "True" : "False"}:
    import select
    attempt("flock: shared file", fcntl.flock, shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
    attempt("flock: own file", fcntl.flock, own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    attempt("epoll", select.epoll)
`,
      [
        ...Object.keys(commands).flatMap((name) =>
          ["shared file", "shared directory", "own file", "pipe"].map((where) => `${name}: ${where}`),
        ),
        ...Object.keys(options),
        ...["shared file", "own file"].map((where) => `open file description lock: ${where}`),
        "pages in memory",
        ...(hasOwnKernel ? [] : ["flock: shared file", "flock: own file", "epoll"]),
      ],
    );
    await cellSession.expectIntact();
  });

  it("what programs need of these still works: asyncio, sqlite, locks of processes, timeouts of sockets, sealed memory", async () => {
    const outcome = await cellSession.run(`
import asyncio, fcntl, os, socket, sqlite3, subprocess
async def both():
    process = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.gather(process.communicate(), asyncio.sleep(0.01))
    return out[0].decode()
with sqlite3.connect("/sandbox/own.db") as database:
    database.execute("create table t (x)")
    database.execute("insert into t values (42)")
other = sqlite3.connect("/sandbox/own.db").execute("select x from t").fetchall()
with open("/sandbox/locked", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
left, right = socket.socketpair()
left.settimeout(1)
left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
memory = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
set_result([asyncio.run(both()), other, fcntl.fcntl(memory, fcntl.F_GET_SEALS) == fcntl.F_SEAL_WRITE, os.get_blocking(left.fileno())])
`);
    expect([outcome.error, outcome.resultJson]).toEqual([undefined, '["hi\\n",[[42]],true,false]']);
    await cellSession.expectIntact();
  });

  it("no system call number that is unknown to the list can be used", async () => {
    const known = new Set(Object.values(syscallNumbers[process.arch === "arm64" ? "aarch64" : "x86_64"]));
    const unknown = Array.from({ length: 1200 }, (_, number) => number).filter((number) => !known.has(number));
    const outcome = await cellSession.run(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def outcome_of(number):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, [0] * 6)) != -1 else ctypes.get_errno())
    return os.waitpid(pid, 0)[1]
def answer_to(number):
    if number in (335, 336):
        status = outcome_of(number)
        return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, [0] * 6)) == -1 else 0
set_result({str(number): answer_to(number) for number in ${JSON.stringify([...unknown, 0x40000000, 0x7fffffff])}})
`);
    expect(outcome.error).toBeUndefined();
    const answers = Object.entries(JSON.parse(outcome.resultJson!) as Record<string, number | string>);
    expect(answers.length).toBeGreaterThan(700);
    // The kernel passes uretprobe and uprobe by every filter. Both end the caller or fail, unless the kernel itself put them into its code.
    const harmless = (number: string): unknown[] => (["335", "336"].includes(number) ? [1, 6, 38, "signal 4"] : [1, 38]);
    expect(answers.filter(([number, answer]) => !harmless(number).includes(answer))).toEqual([]);
    await cellSession.expectIntact();
  });

  it("user code has no privileges and cannot regain any", async () => {
    const outcome = await cellSession.run(`
import ctypes, os
status = dict(line.rstrip().split(":\\t", 1) for line in open("/proc/self/status") if line.startswith(("Cap", "Seccomp:")))
libc = ctypes.CDLL(None)
set_result({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getresuid(), *os.getgroups()],
    "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd")],
    "noNewPrivileges": libc.prctl(39, 0, 0, 0, 0),
    "seccomp": int(status["Seccomp"]),
})
`);
    expect(outcome.error).toBeUndefined();
    expect(JSON.parse(outcome.resultJson!)).toEqual({
      ids: [1000, 1000, 1000, 1000, 1000, 1000, 1000],
      capabilities: [0, 0, 0, 0],
      noNewPrivileges: 1,
      seccomp: 2,
    });
    const changes = { setuid: [0], setgid: [0], setresuid: [0, 0, 0], setreuid: [0, 0], setgroups: [0, 0], setfsuid: [0], capset: [0, 0] };
    await cellSession.expectAllRefused(
      `
for name, arguments in ${JSON.stringify(changes)}.items():
    attempt(name, call, name, *arguments)
attempt("keeping capabilities", call, "prctl", 8, 1, 0, 0, 0)
attempt("ambient capabilities", call, "prctl", 47, 2, 21, 0, 0)
attempt("secure bits", call, "prctl", 28, 0, 0, 0, 0)
attempt("a second seccomp filter", call, "prctl", 22, 2, None, 0, 0)
attempt("a seccomp listener", call, "seccomp", 1, 8, None)
attempt("clearing no_new_privs", call, "prctl", 38, 0, 0, 0, 0)
attempt("another executable", call, "prctl", 35, 13, 3, 0, 0)
attempt("letting others trace", call, "prctl", 0x59616d61, -1, 0, 0, 0)
attempt("more processes", call, "prlimit64", 0, 6, struct.pack("QQ", 1 << 20, 1 << 20), None)
`,
      [
        ...Object.keys(changes),
        "keeping capabilities",
        "ambient capabilities",
        "secure bits",
        "a second seccomp filter",
        "a seccomp listener",
        "clearing no_new_privs",
        "another executable",
        "letting others trace",
        "more processes",
      ],
    );
    await cellSession.expectIntact();
  });

  it("namespaces cannot be created or entered, nothing can be mounted, and the root cannot be changed", async () => {
    const flags = {
      user: 0x10000000,
      mount: 0x00020000,
      pid: 0x20000000,
      network: 0x40000000,
      ipc: 0x08000000,
      uts: 0x04000000,
      cgroup: 0x02000000,
      time: 0x00000080,
    };
    const attempts = await cellSession.expectAllRefused(
      `
def clone3(flag):
    arguments = struct.pack("=11Q", flag, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    child = call("clone3", arguments, len(arguments))
    if child == 0:
        os._exit(0)
    return child
def clone(flag):
    child = call("clone", flag | 17, None, None, None, None)
    if child == 0:
        os._exit(0)
    return child
for name, flag in ${JSON.stringify(flags)}.items():
    attempt(f"unshare {name}", call, "unshare", flag)
    attempt(f"clone3 {name}", clone3, flag)
    if name != "time":
        attempt(f"clone {name}", clone, flag)
attempt("clone user with high bits", clone, 0x10000000 | (1 << 40))
for name in ("user", "mnt", "pid", "net"):
    attempt(f"setns {name}", lambda: call("setns", os.open(f"/proc/self/ns/{name}", os.O_RDONLY), 0))
attempt("setns pidfd", lambda: call("setns", os.pidfd_open(os.getppid()), 0x10000000))
attempt("mount", call, "mount", b"none", b"/tmp", b"tmpfs", 0, None)
attempt("mount proc", call, "mount", b"proc", b"/sandbox", b"proc", 0, None)
attempt("remount", call, "mount", b"", b"/", b"", 32, None)
attempt("umount", call, "umount2", b"/run", 2)
attempt("umount proc", call, "umount2", b"/proc", 2)
attempt("fsopen", call, "fsopen", b"tmpfs", 0)
attempt("open_tree", call, "open_tree", -100, b"/", 1)
attempt("move_mount", call, "move_mount", -100, b"/tmp", -100, b"/run", 0)
attempt("mount_setattr", call, "mount_setattr", -100, b"/", 0, None, 0)
attempt("chroot", os.chroot, "/sandbox")
attempt("pivot_root", call, "pivot_root", b"/sandbox", b"/sandbox/out")
`,
      [
        ...Object.keys(flags).flatMap((name) => [`unshare ${name}`, `clone3 ${name}`, ...(name === "time" ? [] : [`clone ${name}`])]),
        "clone user with high bits",
        ...["user", "mnt", "pid", "net"].map((name) => `setns ${name}`),
        "setns pidfd",
        "mount",
        "mount proc",
        "remount",
        "umount",
        "umount proc",
        "fsopen",
        "open_tree",
        "move_mount",
        "mount_setattr",
        "chroot",
        "pivot_root",
      ],
    );
    expect(notRefusedByFilter(attempts)).toEqual({});
    await cellSession.expectIntact();
  });

  it("dangerous system calls are refused, also by their raw numbers", async () => {
    const calls = [
      ...["ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise"],
      ...["add_key", "request_key", "keyctl"],
      ...["bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_submit"],
      ...["open_by_handle_at", "name_to_handle_at", "fanotify_init", "quotactl", "acct", "swapon", "swapoff"],
      ...["init_module", "finit_module", "delete_module", "kexec_load", "reboot", "syslog", "settimeofday", "clock_settime", "adjtimex"],
      ...[
        "sethostname",
        "setdomainname",
        "vhangup",
        "move_pages",
        "migrate_pages",
        "mbind",
        "lookup_dcookie",
        "memfd_secret",
        "landlock_create_ruleset",
      ],
      ...["splice", "tee", "vmsplice", "remap_file_pages", "modify_ldt", "iopl", "ioperm"].filter(
        (name) => process.arch === "x64" || !["modify_ldt", "iopl", "ioperm"].includes(name),
      ),
    ];
    const attempts = await cellSession.expectAllRefused(
      `
for name in ${JSON.stringify(calls)}:
    attempt(name, call, name, 0, 0, 0, 0, 0, 0)
for number in (512, 600, 1000, 0x7fffffff):
    NUMBERS["unknown"] = number
    attempt(f"call {number}", call, "unknown", 0, 0, 0, 0, 0, 0)
attempt("personality without randomisation", call, "personality", 0x0040000)
attempt("personality that maps at zero", call, "personality", 0x0100000)
attempt("mapping at zero", call, "mmap", 0, 4096, 3, 0x32, -1, 0)
`,
      [
        ...calls,
        ...[512, 600, 1000, 0x7fffffff].map((number) => `call ${number}`),
        "personality without randomisation",
        "personality that maps at zero",
        "mapping at zero",
      ],
    );
    expect(notRefusedByFilter(attempts)).toEqual({});
    await cellSession.expectIntact();
  });

  const onX86 = process.arch === "x64" ? it : null; // other machines have no such doors
  onX86?.("the 32-bit and x32 doors into the kernel are shut as well", async () => {
    const outcome = await cellSession.run(`
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
x32 = libc.syscall(ctypes.c_long(0x40000000 + 41), ctypes.c_long(2), ctypes.c_long(1), ctypes.c_long(0))
# socket(AF_INET, SOCK_STREAM, 0) through int 0x80: eax 359, ebx 2, ecx 1, edx 0; rbx is kept
code = bytes.fromhex("53" "b867010000" "bb02000000" "b901000000" "31d2" "cd80" "5b" "c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
child = os.fork()
if child == 0:
    got = function()
    os._exit(99 if got >= 0 else 1)
_, status = os.waitpid(child, 0)
set_result({"x32": x32, "legacyGotThrough": os.WIFEXITED(status) and os.WEXITSTATUS(status) == 99})
`);
    expect(outcome.error).toBeUndefined();
    expect(JSON.parse(outcome.resultJson!)).toEqual({ x32: -1, legacyGotThrough: false });
    await cellSession.expectIntact();
  });

  it("setuid programs, of the snapshot and self-made, do not change the user", async () => {
    const outcome = await cellSession.run(`
import os, shutil, stat, subprocess, sys
found = []
for directory, names, files in os.walk("/usr"):
    for name in files:
        path = os.path.join(directory, name)
        info = os.lstat(path)
        if stat.S_ISREG(info.st_mode) and info.st_mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(path)
shutil.copy("/usr/bin/python3", "/sandbox/own")
os.chmod("/sandbox/own", 0o6755)
ids = []
for program in ["/sandbox/own", sys.executable]:
    done = subprocess.run([program, "-c", "import os; print(os.getresuid(), os.getresgid())"], capture_output=True, text=True)
    ids.append(done.stdout.strip())
gained = []
for path in found:
    done = subprocess.run([path], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=5)
    gained.append([path, done.returncode])
set_result({"ids": ids, "setuid": found})
`);
    expect(outcome.error).toBeUndefined();
    const { ids, setuid } = JSON.parse(outcome.resultJson!) as { ids: string[]; setuid: string[] };
    expect(ids).toEqual(["(1000, 1000, 1000) (1000, 1000, 1000)", "(1000, 1000, 1000) (1000, 1000, 1000)"]);
    expect(setuid).toEqual([]);
    await cellSession.expectTruthful();
  });

  it("a program that runs from memory or under another name is confined like the cell", async () => {
    const outcome = await cellSession.run(`
import os, subprocess, sys
with open("/usr/bin/python3", "rb") as file:
    program = file.read()
memory = os.memfd_create("payload", 0)
os.write(memory, program)
ATTACK = """
import ctypes, os, socket
refused = 0
for what in (lambda: socket.socket(), lambda: os.unshare(0x10000000), lambda: os.chroot('/tmp'), lambda: open('/etc/escaped', 'w')):
    try:
        what()
    except OSError:
        refused += 1
print(refused, os.getuid())
"""
by_path = subprocess.run([f"/proc/self/fd/{memory}", "-c", ATTACK], capture_output=True, text=True, pass_fds=[memory])
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.dup2(write, 1)
    os.execve(memory, ["payload", "-c", ATTACK], {})
os.close(write)
os.waitpid(child, 0)
set_result([by_path.stdout.strip(), os.read(read, 100).decode().strip()])
`);
    expect(outcome.error).toBeUndefined();
    expect(JSON.parse(outcome.resultJson!)).toEqual(["4 1000", "4 1000"]);
    expect(traps.reached()).toEqual(untouched);
    await cellSession.expectTruthful();
  });
});

/**
 * Attempts that the seccomp filter did not refuse. Only EPERM and ENOSYS come from the filter; another errno may only mean that the arguments were wrong.
 * Mapping page zero is refused by the kernel itself.
 */
function notRefusedByFilter(attempts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(attempts).filter(([name, how]) => !/^refused: (EPERM|ENOSYS)$/.test(how) && name !== "mapping at zero"),
  );
}
