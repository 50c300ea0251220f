import { scratchDirectory, workerEnvironment, workerUid } from "../../worker-environment.ts";
import { type ArgumentCondition, seccompPolicy } from "../../seccomp/policy.ts";

/**
 * What runsc is told about the sandbox. Everything here is frozen into the memory image and part of its key, but for the path of the root file system.
 * Limits that change from lease to lease are not here: memory is the cgroup's, rlimits are set by the worker when it is told them in `hello`.
 */
export function toOciSpec({ rootfs, scratchBytes }: { rootfs: string; scratchBytes: number }) {
  const side = Math.floor(scratchBytes / 8); // three mounts cannot share one size here, so together they have it
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
      tmpfs(scratchDirectory, "0700", scratchBytes - 2 * side),
      tmpfs("/tmp", "1777", side),
      tmpfs("/dev/shm", "1777", side),
    ],
    linux: {
      namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })),
      seccomp: toOciSeccomp(),
    },
  };
}

/**
 * The list as `linux.seccomp` of an OCI spec, for `runsc --oci-seccomp`. runsc knows these actions and this operator; it skips names it does not implement,
 * and those stay refused. runsc before 2026 ignores `errnoRet` and would answer EPERM to clone3, after which no thread starts; SCMP_ACT_TRACE without a tracer
 * is ENOSYS by definition, in Linux as in gVisor, and ptrace is refused, so no tracer can come.
 */
export function toOciSeccomp() {
  const { defaultErrno, allowed, refused } = seccompPolicy;
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

/** One entry an alternative: two conditions on one argument inside an entry would mean "or", on two arguments "and". */
function allowedCalls(names: readonly string[], conditions: readonly ArgumentCondition[]) {
  const args = conditions.map(({ index, mask, value }) => ({ index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" }));
  return { names, action: "SCMP_ACT_ALLOW", args: args.length === 0 ? undefined : args };
}
