import { scratchDirectory, workerEnvironment } from "../../worker-environment.ts";

/** Paths inside the zygote's bwrap. zygote.py has the same socket path. Every sandbox hides /run before it runs user code. */
const socketDirectory = "/run/sluice";
const cgroupDirectory = "/run/cgroup";

export interface BwrapOptions {
  readonly rootfs: string;
  /** Contains the socket to which sandboxes connect. */
  readonly socketDirectory: string;
  /** Directories in the host's cgroup trees where the cgroups of leases are created. */
  readonly cgroupDirectories: readonly string[];
  readonly isRoot: boolean;
}

/**
 * Arguments of the bwrap that runs the zygote. As root, it has no user namespace: bwrap mounts with root's rights, because the cache may be below a
 * home directory that no other user can enter, and the zygote gives up root before it does anything else. It has no cgroup namespace either: sandboxes
 * first join their cgroup, then create their own cgroup namespace.
 */
export function toBwrapArguments({ rootfs, socketDirectory: sockets, cgroupDirectories, isRoot }: BwrapOptions): string[] {
  return [
    ...["--die-with-parent", "--new-session", "--as-pid-1"],
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname", "sandbox"],
    ...(isRoot
      ? ["--cap-drop", "ALL", ...zygoteCapabilities.flatMap((name) => ["--cap-add", name])]
      : ["--unshare-user", "--cap-drop", "ALL"]),
    ...["--ro-bind", rootfs, "/"],
    ...["--proc", "/proc"],
    ...["--tmpfs", "/dev", ...devices.flatMap((path) => ["--dev-bind", path, path]), ...deviceLinks],
    ...["--dir", "/dev/shm", "--remount-ro", "/dev"],
    ...["--perms", "0777", "--tmpfs", scratchDirectory, "--perms", "1777", "--tmpfs", "/tmp"],
    ...["--tmpfs", "/run", "--ro-bind", sockets, socketDirectory, "--perms", "0755", "--dir", cgroupDirectory],
    ...cgroupDirectories.flatMap((path, index) => ["--bind", path, `${cgroupDirectory}/${index}`]),
    ...["--clearenv", ...Object.entries(workerEnvironment).flatMap(([name, value]) => ["--setenv", name, value])],
    ...["--chdir", scratchDirectory, "--", "/usr/bin/python3", "-m", "sluice_worker.zygote"],
  ];
}

/** Translates the path of a file in one of `cgroupDirectories` to its path inside the zygote. */
export function toZygotePath(cgroupDirectories: readonly string[], hostPath: string): string {
  const index = cgroupDirectories.findIndex((directory) => hostPath.startsWith(`${directory}/`));
  if (index === -1) throw new RangeError(`${hostPath} is not in a cgroup directory of the zygote`);
  return `${cgroupDirectory}/${index}${hostPath.slice(cgroupDirectories[index]!.length)}`;
}

/** Needed to mount a /proc that sandboxes can mount again, to change the user, and to drop these capabilities. */
const zygoteCapabilities = ["CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"];

const devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const deviceLinks = [
  ...["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin"],
  ...["--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"],
];
