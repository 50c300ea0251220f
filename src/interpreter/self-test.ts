import { createImageChecker } from "../artifacts/create-image-checker.ts";
import type { SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import { withLimits } from "../sandbox/limits.ts";
import { openSession, type Session } from "./open-session.ts";
import { hostLoopbackPort } from "./host-loopback-port.ts";

/** One thing that was tried from inside a real sandbox, and whether it was held. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

const MEMORY_BYTES = 384 * 1024 * 1024;

/**
 * Opens a real sandbox of the driver and tries to get out of it. What the cell says is checked where the host can check it: a listener of
 * our own counts connections, and the memory test is judged by how the cell ended.
 */
export async function selfTest({
  driver,
  snapshot,
  signal,
}: {
  driver: SandboxDriver;
  snapshot: Snapshot;
  signal?: AbortSignal;
}): Promise<Check[]> {
  const limits = withLimits({ memoryBytes: MEMORY_BYTES, cellTimeoutMs: 20_000 });
  await using port = await hostLoopbackPort();
  await using images = createImageChecker();
  await using session = openSession({
    images,
    rollback: driver.rollback,
    limits,
    take: async () => {
      const lease = await driver.open({ snapshot, limits, networkPolicy: "deny-all", ...(signal && { signal }) });
      return { lease, start: lease.start };
    },
  });
  const checks = await tryFromInside(session, port.port, signal);
  if (port.connections() > 0)
    checks.push({ name: "network", ok: false, detail: "a connection from the sandbox reached a port of this machine" });
  checks.push(await tryMemory(session, signal));
  return checks;
}

async function tryFromInside(session: Session, port: number, signal?: AbortSignal): Promise<Check[]> {
  const outcome = await session.run({ code: probeCode(port), ...(signal && { signal }) });
  if (outcome.status !== "ok" || outcome.resultJson === null) {
    return [{ name: "python", ok: false, detail: `the self-test ended as ${outcome.status}: ${outcome.error?.message ?? "no result"}` }];
  }
  const found = JSON.parse(outcome.resultJson) as Record<string, { ok: boolean; detail: string }>;
  return Object.entries(found).map(([name, { ok, detail }]) => ({ name, ok: ok, detail }));
}

async function tryMemory(session: Session, signal?: AbortSignal): Promise<Check> {
  const code = "blocks = []\nfor _ in range(64):\n    blocks.append(np.ones(16 * 1024 * 1024 // 8))\n";
  const { status } = await session.run({ code, ...(signal && { signal }) });
  const after = await session.run({ code: "1 + 1", ...(signal && { signal }) });
  const held = status === "out_of_memory" && after.status === "ok";
  return {
    name: "memory",
    ok: held,
    detail: held
      ? `1 GB asked for under a limit of ${MEMORY_BYTES / 1024 / 1024} MB ended as out_of_memory, and the next cell ran`
      : `1 GB asked for under a limit of ${MEMORY_BYTES / 1024 / 1024} MB ended as ${status}, the next cell as ${after.status}`,
  };
}

function probeCode(port: number): string {
  return `
import ctypes, os, socket, sys
checks = {}

def refused(name, attempts):
    got_through = []
    for what, attempt in attempts.items():
        try:
            attempt()
            got_through.append(what)
        except BaseException:
            pass
    detail = "got through: " + ", ".join(got_through) if got_through else "refused: " + ", ".join(attempts)
    checks[name] = {"ok": not got_through, "detail": detail}

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        s.connect(address)

def send_udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("192.0.2.1", 53))

def write(path):
    with open(path, "w") as f:
        f.write("x")

libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if getattr(libc, name)(*args) == -1:
        raise OSError(ctypes.get_errno(), name)

refused("network", {
    "TCP to this machine": lambda: connect(socket.AF_INET, ("127.0.0.1", ${port})),
    "TCP outside": lambda: connect(socket.AF_INET, ("192.0.2.1", 80)),
    "IPv6": lambda: connect(socket.AF_INET6, ("::1", ${port})),
    "UDP": send_udp,
})
refused("dns", {"a lookup": lambda: socket.getaddrinfo("example.com", 80)})
refused("file system", {
    "writing to /": lambda: write("/x"), "to /usr": lambda: write("/usr/x"), "to /etc": lambda: write("/etc/x"),
    "reading the host's shadow file": lambda: open("/etc/shadow").read(1), "raw disks": lambda: os.listdir("/dev/disk"),
})
others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) > 200]
checks["processes"] = {"ok": not others and os.getuid() != 0, "detail": f"uid {os.getuid()}, sees {sum(p.isdigit() for p in os.listdir('/proc'))} processes"}
refused("syscalls", {
    "mount": lambda: call("mount", b"none", b"/mnt", b"tmpfs", 0, None), "a user namespace": lambda: call("unshare", 0x10000000),
    "ptrace": lambda: call("ptrace", 16, os.getppid(), 0, 0), "chroot": lambda: os.chroot("/tmp"),
})
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
caps = int(status["CapEff"].strip(), 16)
checks["capabilities"] = {"ok": caps == 0, "detail": f"effective capabilities {caps:#x}"}
set_result(checks)
`;
}
