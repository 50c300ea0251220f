import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Cgroups } from "../../cgroup/find-cgroups.ts";
import type { Preflight } from "../../contract.ts";
import { describeAge, type Runsc, userNamespaceCommand } from "./runsc.ts";

export const runscMissing = {
  reason: "gVisor's program runsc was not found.",
  fix: "Run `sluice prepare`, which extracts it from Debian's packages, or install gVisor so that runsc is on PATH.",
} as const;

export interface GvisorPreflightOptions {
  readonly locateRunsc: () => Promise<Runsc | null>;
  readonly rootless: boolean;
  readonly cgroups: Cgroups;
  /** Why checkpoints do not work on this machine, if an attempt has failed. */
  readonly coldReason: string | null;
}

const OLD_AFTER_DAYS = 365;

/** Checks platform, rights and runsc. Starts no sandbox and never throws. */
export async function preflightGvisor({ locateRunsc, rootless, cgroups, coldReason }: GvisorPreflightOptions): Promise<Preflight> {
  if (process.platform !== "linux") return unusable("gVisor runs on Linux only.", "Run Sluice on a Linux machine.");
  if (process.arch !== "x64" && process.arch !== "arm64")
    return unusable(`gVisor does not run on ${process.arch} processors.`, "Use a machine with an x86-64 or ARM64 processor.");
  if (!rootless && process.getuid?.() !== 0)
    return unusable("The gvisor driver needs root, and this process is not root.", "Run as root, or use the driver gvisor-rootless.");
  if (rootless && !(await canCreateUserNamespace()))
    return unusable(
      "This user may not create a user namespace, which gvisor-rootless needs.",
      "Run as root and use the gvisor driver, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0).",
    );
  try {
    const runsc = await locateRunsc();
    if (runsc === null) return { usable: false, ...runscMissing };
    const notes = toNotes({ runsc, rootless, cgroups, coldReason });
    return { usable: true, version: `runsc ${runsc.version} (${describeAge(runsc)})`, notes };
  } catch (error) {
    return unusable(`runsc does not run on this machine: ${(error as Error).message}`, "Install a runsc for this processor and kernel.");
  }
}

function unusable(reason: string, fix: string): Preflight {
  return { usable: false, reason, fix };
}

/** Tries it, which takes a few milliseconds and is more reliable than reading the various settings that may forbid it. */
async function canCreateUserNamespace(): Promise<boolean> {
  const [program, ...args] = [...userNamespaceCommand, "/bin/true"];
  return promisify(execFile)(program, args, { timeout: 5_000, env: {} }).then(
    () => true,
    () => false,
  );
}

function toNotes({ runsc, rootless, cgroups, coldReason }: Omit<GvisorPreflightOptions, "locateRunsc"> & { runsc: Runsc }): string[] {
  const notes: string[] = [];
  if (runsc.releasedAt !== null && Date.now() - runsc.releasedAt.getTime() > OLD_AFTER_DAYS * 86_400_000) {
    notes.push(`This runsc is old (${describeAge(runsc)}) and lacks later fixes. To replace it, put a newer one on PATH.`);
  }
  if (!cgroups.available)
    notes.push(
      `No cgroup limits: ${cgroups.reason} Instead, memory is measured from outside every 25 ms, and the number of processes is limited only inside the sandbox.`,
    );
  if (rootless)
    notes.push(
      "Rootless: gVisor's processes run as the user who started Sluice, not as nobody, so code that breaks out has that user's rights.",
    );
  if (coldReason !== null) notes.push(`Checkpoints do not work on this machine, so every sandbox imports the stack itself: ${coldReason}`);
  return notes;
}
