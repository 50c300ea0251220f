import { NoSandboxError } from "../../errors/sluice-error.ts";
import { createVersion1 } from "./cgroup-v1.ts";
import { createVersion2 } from "./cgroup-v2.ts";
import type { LeaseCgroup } from "./contract.ts";
import type { Cgroups } from "./find-cgroups.ts";

export type { LeaseCgroup } from "./contract.ts";
export { hostCgroupName } from "./host-cgroup-name.ts";

export interface LeaseCgroupOptions {
  readonly cgroups: Cgroups & { readonly available: true };
  /** Unique among the sandboxes of this host process. */
  readonly name: string;
  readonly memoryBytes: number;
  /** Threads count as processes here, as everywhere in Linux. */
  readonly processes: number;
  /** A uid that may move itself in, though it is not root. */
  readonly owner?: number;
  /** When memory runs out, the kernel takes all of it and not one process, where it can (version 2). */
  readonly dieTogether?: boolean;
}

export async function createLeaseCgroup(options: LeaseCgroupOptions): Promise<LeaseCgroup> {
  const { cgroups, name } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new RangeError(`Not a name for a cgroup: ${JSON.stringify(name)}`);
  try {
    return cgroups.version === 1
      ? await createVersion1({ ...options, parents: cgroups.parents })
      : await createVersion2({ ...options, parent: cgroups.parent });
  } catch (error) {
    throw new NoSandboxError({
      code: "CGROUP_FAILED",
      message: `The cgroup of a sandbox could not be made: ${(error as Error).message}`,
      hint: "Check that the cgroup tree under /sys/fs/cgroup is writable for this user.",
      cause: error,
    });
  }
}
