import { toOciSeccomp } from "../../seccomp/to-oci-seccomp.ts";
import { scratchDirectory, workerEnvironment, workerUid } from "../../worker-environment.ts";

/**
 * What runsc is told about the sandbox. Everything here is frozen into the memory image and part of its key, but for the paths of the root file system and of the heap.
 * Limits that change from lease to lease are not here: memory is the cgroup's, rlimits are set by the worker when it is told them in `hello`.
 */
export function toOciSpec({ rootfs, heap, scratchBytes }: SpecOptions): OciSpec {
  const side = Math.floor(scratchBytes / 8); // three mounts cannot share one size here, so together they have it
  const tmpfs = (destination: string, mode: string, bytes: number): OciMount => ({
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
      ...(heap === null ? [] : [{ destination: "/run", type: "bind", source: heap, options: ["ro", "nosuid", "nodev", "noexec"] }]),
    ],
    linux: {
      namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })),
      seccomp: toOciSeccomp(),
    },
  };
}

interface SpecOptions {
  readonly rootfs: string;
  /** The directory of the heap's file; null for a sandbox that is neither made into an image nor from one. */
  readonly heap: string | null;
  readonly scratchBytes: number;
}

export interface OciSpec {
  readonly ociVersion: string;
  readonly hostname: string;
  readonly root: { readonly path: string; readonly readonly: true };
  readonly process: Readonly<Record<string, unknown>>;
  readonly mounts: readonly OciMount[];
  readonly linux: Readonly<Record<string, unknown>>;
}

interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}
