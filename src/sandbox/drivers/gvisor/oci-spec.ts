import { scratchDirectory, workerEnvironment, workerUid } from "../../worker-environment.ts";
import { type ArgumentCondition, ownKernelSeccompPolicy } from "../../seccomp/policy.ts";

/**
 * The container specification for runsc. All of it, except the path of the root file system, is part of the memory image and of the image's key.
 * Limits that differ between leases are not part of it: the cgroup limits memory, and the worker sets the rlimits that it receives in `hello`.
 */
export function toOciSpec({ rootfs, scratchBytes }: { rootfs: string; scratchBytes: number }) {
  const smallMountBytes = Math.floor(scratchBytes / 8); // the three mounts cannot share one limit, so they divide it
  const tmpfs = (destination: string, mode: string, bytes: number) => ({
    destination,
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "nodev", `mode=${mode}`, `uid=${workerUid}`, `gid=${workerUid}`, `size=${bytes}`],
  });
  return {
    ociVersion: "1.0.0",
    hostname: "sandbox",
    root: { path: rootfs, readonly: true },
    process: {
      terminal: false,
      user: { uid: workerUid, gid: workerUid, additionalGids: [] },
      args: ["/usr/bin/python3", "-m", "sluice_worker"],
      env: Object.entries(workerEnvironment).map(([name, value]) => `${name}=${value}`),
      cwd: scratchDirectory,
      noNewPrivileges: true,
      capabilities: { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] },
      rlimits: [
        { type: "RLIMIT_CORE", soft: 0, hard: 0 },
        { type: "RLIMIT_NOFILE", soft: 65_536, hard: 65_536 },
        { type: "RLIMIT_NPROC", soft: 65_536, hard: 65_536 },
      ],
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "nodev", "noexec"] },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "noexec", "mode=0755"] },
      { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "nodev", "noexec", "ro"] },
      tmpfs(scratchDirectory, "0700", scratchBytes - 2 * smallMountBytes),
      tmpfs("/tmp", "1777", smallMountBytes),
      tmpfs("/dev/shm", "1777", smallMountBytes),
    ],
    linux: {
      namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })),
      seccomp: toOciSeccomp(),
    },
  };
}

/**
 * The seccomp policy as `linux.seccomp` of an OCI spec, for `runsc --oci-seccomp`. runsc ignores names that it does not implement; these calls stay
 * refused. clone3 must fail with ENOSYS, or no thread can start, but runsc before 2026 ignores `errnoRet` and would answer EPERM. SCMP_ACT_TRACE without
 * a tracer answers ENOSYS, in Linux and in gVisor, and there can be no tracer because ptrace is refused.
 */
export function toOciSeccomp() {
  const { defaultErrno, allowed, refused } = ownKernelSeccompPolicy;
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: defaultErrno,
    architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
    syscalls: [
      ...allowed.flatMap(({ names, when }) => (when ?? [[]]).map((conditions) => allowedCalls(names, conditions))),
      ...refused.map(({ names }) => ({ names, action: "SCMP_ACT_TRACE", args: undefined })),
    ],
  };
}

/** One entry per alternative, because runsc combines conditions on the same argument of an entry with "or". */
function allowedCalls(names: readonly string[], conditions: readonly ArgumentCondition[]) {
  const args = conditions.map(({ index, mask, value }) => ({ index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" }));
  return { names, action: "SCMP_ACT_ALLOW", args: args.length === 0 ? undefined : args };
}
