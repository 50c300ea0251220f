import { existsSync } from "node:fs";

/**
 * The flags of every runsc command. `--directfs=false`: files are opened by the gofer, so the sandbox process itself is nobody without capabilities; restore is not
 * slower for it. Without root there is no nobody to become, and the sandbox process opens files of the snapshot itself. `--overlay2=none`: the root is read-only, nothing
 * has to be overlaid and no file store appears beside it. `--ignore-cgroups`: the sandbox is put into a cgroup of ours before runsc starts.
 * `--file-access=exclusive`: nobody changes a snapshot while it is used.
 */
export function toRunscFlags({ rootless }: { rootless: boolean }): string[] {
  return [
    "--network=none",
    "--host-uds=none",
    "--host-fifo=none",
    "--platform=systrap",
    "--oci-seccomp",
    "--overlay2=none",
    "--file-access=exclusive",
    `--directfs=${rootless}`,
    "--ignore-cgroups",
  ];
}

/**
 * What is put before runsc. Without root, runsc gets a user namespace in which it is root and nothing else is there: its own `--rootless` does the same,
 * but refuses to restore. The signal at the parent's death comes last, because entering a namespace clears it; both programs are in util-linux, which every Debian has.
 */
export function toRunscPrefix({ rootless }: { rootless: boolean }): string[] {
  const setpriv = "/usr/bin/setpriv";
  return [...(rootless ? userNamespaceCommand : []), ...(existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL"] : [])];
}

/** Runs what follows it as root of a user namespace that holds the present user only. */
export const userNamespaceCommand: readonly string[] = ["/usr/bin/unshare", "--user", "--map-root-user"];
