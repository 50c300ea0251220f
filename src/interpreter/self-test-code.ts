export interface SelfTestFacts {
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly file: string;
  readonly commandLine: string;
  readonly processes: number;
}

/** What the self-test runs inside: each attempt must be refused by the system, at once. One that times out, or slips, was not refused. */
export function toSelfTestCode({ tcpPort, udpPort, file, commandLine, processes }: SelfTestFacts): string {
  return `
import ctypes, os, signal, socket, stat, threading
checks = {}

def refused(name, attempts):
    got_through = []
    for what, attempt in attempts.items():
        try:
            attempt()
            got_through.append(what)
        except TimeoutError:
            got_through.append(what + " (timed out)")
        except OSError:
            pass
        except Exception as error:
            got_through.append(f"{what} (could not be tried: {error!r})")
    detail = "got through: " + ", ".join(got_through) if got_through else "refused: " + ", ".join(attempts)
    checks[name] = {"ok": not got_through, "detail": detail}

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        s.connect(address)

def send_udp(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", address)

def write(path):
    with open(path, "w") as f:
        f.write("x")

def read(path):
    with open(path) as f:
        return f.read(1)

def raw_disks():
    if not any(stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode) for entry in os.scandir("/dev")):
        raise FileNotFoundError("there are none")

libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if getattr(libc, name)(*args) == -1:
        raise OSError(ctypes.get_errno(), name)

def in_a_child(attempt):
    """What works may not spoil the rest of the test."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
            os._exit(0)
        except OSError:
            os._exit(1)
        finally:
            os._exit(2)
    how = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if how == 1:
        raise PermissionError
    if how != 0:
        raise RuntimeError(f"exit status {how}")

def trace_another():
    other = os.fork()
    if other == 0:
        signal.pause()
    try:
        call("ptrace", 16, other, 0, 0)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)

refused("network", {
    "TCP to this machine": lambda: connect(socket.AF_INET, ("127.0.0.1", ${tcpPort})),
    "TCP outside": lambda: connect(socket.AF_INET, ("192.0.2.1", 80)),
    "IPv6": lambda: connect(socket.AF_INET6, ("::1", ${tcpPort})),
    "UDP to this machine": lambda: send_udp(("127.0.0.1", ${udpPort})),
    "UDP outside": lambda: send_udp(("192.0.2.1", 53)),
})
refused("dns", {"a lookup": lambda: socket.getaddrinfo("example.com", 80)})
refused("file system", {
    "writing to /": lambda: write("/x"), "to /usr": lambda: write("/usr/x"), "to /etc": lambda: write("/etc/x"),
    "reading a file of the host": lambda: read(${JSON.stringify(file)}), "the shadow file": lambda: read("/etc/shadow"), "raw disks": raw_disks,
})
refused("syscalls", {
    "mount": lambda: in_a_child(lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
    "a user namespace": lambda: in_a_child(lambda: call("unshare", 0x10000000)),
    "ptrace": lambda: in_a_child(trace_another),
    "chroot": lambda: in_a_child(lambda: os.chroot("/tmp")),
})

def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return None

seen = [pid for pid in os.listdir("/proc") if pid.isdigit()]
sees_host = ${JSON.stringify(commandLine)} in [command_line(pid) for pid in seen]
started, end = [], threading.Event()
try:
    while len(started) < ${processes + 100}:
        thread = threading.Thread(target=end.wait)
        thread.start()
        started.append(thread)
except RuntimeError:
    pass
end.set()
for thread in started:
    thread.join()
bounded = len(started) < ${processes}
checks["processes"] = {
    "ok": not sees_host and os.getuid() != 0 and bounded,
    "detail": f"uid {os.getuid()}, sees {len(seen)} processes{', one of them the host' if sees_host else ''}, "
    + ("no more than ${processes} at once" if bounded else f"{len(started)} threads at once, ${processes} are allowed"),
}
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
caps = int(status["CapEff"].strip(), 16)
checks["capabilities"] = {"ok": caps == 0, "detail": f"effective capabilities {caps:#x}"}
set_result(checks)
`;
}
