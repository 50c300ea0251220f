import { NoSandboxError } from "../../errors/sluice-error.ts";
import type { Usage } from "../contract.ts";
import { currentProcess, toProcessKey } from "../host-process.ts";
import { createVersion1 } from "./cgroup-v1.ts";
import { createVersion2 } from "./cgroup-v2.ts";
import type { Cgroups } from "./find-cgroups.ts";

/** The limits and the meter of one sandbox. Its directories exist until remove(). */
export interface LeaseCgroup {
  /** The directories, one per hierarchy. */
  readonly paths: readonly string[];
  /** A process that writes "0" into each of these is in; what it forks afterwards is too. */
  readonly joinPaths: readonly string[];
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  /** SIGKILL to everything inside; resolves when nothing is left. Nothing can be started in it afterwards. */
  kill(): Promise<void>;
  /** Idempotent; kills what is left first. */
  remove(): Promise<void>;
}

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
    return cgroups.version === 1 ? await createVersion1({ ...options, parents: cgroups.parents }) : await createVersion2({ ...options, parent: cgroups.parent });
  } catch (error) {
    throw new NoSandboxError({
      code: "CGROUP_FAILED",
      message: `The cgroup of a sandbox could not be made: ${(error as Error).message}`,
      hint: "Check that the cgroup tree under /sys/fs/cgroup is writable for this user.",
      cause: error,
    });
  }
}

/** All cgroups of one host process are below one directory of this name, so that what a dead host left can be found. */
export function hostCgroupName(): string {
  return `${hostCgroupPrefix}${toProcessKey(currentProcess())}`;
}

export const hostCgroupPrefix = "sluice-";
