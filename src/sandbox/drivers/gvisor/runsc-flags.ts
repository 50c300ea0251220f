/**
 * The flags of every runsc command. `--directfs=false`: files are opened by the gofer, so the sandbox process itself is nobody without capabilities; restore is not
 * slower for it. `--overlay2=none`: the root is read-only, nothing has to be overlaid and no file store appears beside it. `--ignore-cgroups`: the sandbox
 * is put into a cgroup of ours before runsc starts. `--file-access=exclusive`: nobody changes a snapshot while it is used.
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
    "--directfs=false",
    "--ignore-cgroups",
    ...(rootless ? ["--rootless"] : []),
  ];
}
