import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLeaseCgroup, type LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { FrameChannel, SandboxLimits, Snapshot } from "../../contract.ts";
import { createFrameChannel } from "../../frame-channel.ts";
import type { LeaseDirectory, RunDirectory } from "../../run-directory.ts";
import { sentryAllowanceBytes } from "./gvisor-lease.ts";
import { awaitImportAndHeap, createHeapFile } from "./heap-file.ts";
import { heapDirectory, type MemoryImage } from "./memory-image.ts";
import { toOciSpec } from "./oci-spec.ts";
import { startRunsc, type RunscProcess } from "./runsc-process.ts";
import { expectFrame } from "./worker-greeting.ts";

export interface StartOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  /** The command that is runsc, with what goes before it. */
  readonly runsc: readonly string[];
  readonly flags: readonly string[];
  /** Null: it is started cold, and imports the stack itself. */
  readonly image: MemoryImage | null;
  /** The directory for the heap's file, when an image is to be made of this one. */
  readonly newHeap?: string;
  readonly runDirectory: RunDirectory;
  readonly signal: AbortSignal;
}

export interface StartedSandbox extends Remains {
  readonly process: RunscProcess;
  readonly channel: FrameChannel;
}

interface Remains {
  readonly directory: LeaseDirectory;
  readonly cgroup: LeaseCgroup | null;
  readonly process: RunscProcess | null;
}

/** Starts runsc and waits until the worker speaks: `imported` when cold, at once when restored. On failure nothing is left. */
export async function startSandbox({
  snapshot,
  limits,
  runsc,
  flags,
  image,
  newHeap,
  runDirectory,
  signal,
}: StartOptions): Promise<StartedSandbox> {
  signal.throwIfAborted();
  const directory = await runDirectory.newLeaseDirectory();
  let cgroup: LeaseCgroup | null = null;
  let process: RunscProcess | null = null;
  try {
    const { cgroups, runscState: state } = runDirectory;
    const heap = image === null ? (newHeap ?? null) : heapDirectory(image.path);
    if (newHeap !== undefined) await createHeapFile(newHeap);
    const spec = toOciSpec({ rootfs: snapshot.rootfs, heap, scratchBytes: limits.scratchBytes });
    [cgroup] = await Promise.all([
      cgroups.available
        ? createLeaseCgroup({
            cgroups,
            name: directory.id,
            memoryBytes: limits.memoryBytes + sentryAllowanceBytes,
            processes: toHostProcesses(limits),
            dieTogether: true,
          })
        : null,
      writeFile(join(directory.path, "config.json"), JSON.stringify(spec)),
    ]);
    const command = [...(image === null ? ["run"] : ["restore", `--image-path=${image.path}`]), `--bundle=${directory.path}`];
    process = await startRunsc({ runsc, state, flags, command, containerId: directory.id, cgroup });
    const channel = createFrameChannel({ readable: process.stdout, writable: process.stdin });
    if (newHeap !== undefined) await awaitImportAndHeap({ directory: newHeap, channel, process, signal });
    else if (image === null) await expectFrame({ channel, type: "imported", process, signal });
    return { directory, cgroup, process, channel };
  } catch (error) {
    await discardSandbox({ directory, cgroup, process });
    throw error;
  }
}

export async function discardSandbox({ directory, cgroup, process }: Remains): Promise<void> {
  await process?.kill();
  await process?.removeState();
  await cgroup?.remove();
  await directory.remove();
}

/** Processes inside are limited by RLIMIT_NPROC; outside, each costs a stub and a few threads beside those of the sentry. */
function toHostProcesses({ processes }: SandboxLimits): number {
  return 256 + 4 * processes;
}
