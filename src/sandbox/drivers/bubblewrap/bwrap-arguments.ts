import { scratchDirectory, workerEnvironment } from "../../worker-environment.ts";

/** Where things are inside the zygote's bwrap; every sandbox covers /run before it goes on. The Python side has the same path (zygote.py). */
const socketDirectory = "/run/sluice";
const cgroupDirectory = "/run/cgroup";

export interface BwrapFacts {
  readonly rootfs: string;
  /** Holds the socket to which sandboxes call back. */
  readonly socketDirectory: string;
  /** Directories of the host's cgroup trees in which the cgroups of leases are made. */
  readonly cgroupDirectories: readonly string[];
  readonly isRoot: boolean;
}

/**
 * One bwrap for the zygote. As root there is no user namespace: bwrap mounts with root's rights, because the cache may be below a home directory that
 * no other user can enter, and the zygote gives up root before it does anything else. There is no cgroup namespace either: sandboxes first move to
 * their cgroup, then make one of their own.
 */
export function toBwrapArguments({ rootfs, socketDirectory: sockets, cgroupDirectories, isRoot }: BwrapFacts): string[] {
  return [
    ...["--die-with-parent", "--new-session", "--as-pid-1"],
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname", "sandbox"],
    ...(isRoot
      ? ["--cap-drop", "ALL", ...zygoteCapabilities.flatMap((name) => ["--cap-add", name])]
      : ["--unshare-user", "--cap-drop", "ALL"]),
    ...["--ro-bind", rootfs, "/"],
    ...["--proc", "/proc"],
    ...[
      "--tmpfs",
      "/dev",
      ...devices.flatMap((path) => ["--dev-bind", path, path]),
      ...deviceLinks,
      "--dir",
      "/dev/shm",
      "--remount-ro",
      "/dev",
    ],
    ...["--perms", "0777", "--tmpfs", scratchDirectory, "--perms", "1777", "--tmpfs", "/tmp"],
    ...["--tmpfs", "/run", "--ro-bind", sockets, socketDirectory, "--perms", "0755", "--dir", cgroupDirectory],
    ...cgroupDirectories.flatMap((path, index) => ["--bind", path, `${cgroupDirectory}/${index}`]),
    ...["--clearenv", ...Object.entries(workerEnvironment).flatMap(([name, value]) => ["--setenv", name, value])],
    ...["--chdir", scratchDirectory, "--", "/usr/bin/python3", "-m", "sluice_worker.zygote"],
  ];
}

/** The path that a sandbox sees of a file on the host in one of `cgroupDirectories`. */
export function toZygotePath(cgroupDirectories: readonly string[], hostPath: string): string {
  const index = cgroupDirectories.findIndex((directory) => hostPath.startsWith(`${directory}/`));
  if (index === -1) throw new RangeError(`${hostPath} is in no cgroup directory that the zygote sees`);
  return `${cgroupDirectory}/${index}${hostPath.slice(cgroupDirectories[index]!.length)}`;
}

/** To mount a /proc that sandboxes can mount again, to change the user, and to drop even these. */
const zygoteCapabilities = ["CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"];

const devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const deviceLinks = [
  ...["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin"],
  ...["--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"],
];
