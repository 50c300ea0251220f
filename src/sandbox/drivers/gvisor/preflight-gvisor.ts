import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Cgroups } from "../../cgroup/find-cgroups.ts";
import type { Preflight } from "../../contract.ts";
import { describeAge, type Runsc, userNamespaceCommand } from "./runsc.ts";

export const runscMissing = {
  reason: "runsc, the program of gVisor, was not found.",
  fix: "Run `sluice prepare`, which extracts it from Debian's packages, or install gVisor so that runsc is on PATH.",
} as const;

export interface PreflightOptions {
  readonly locateRunsc: () => Promise<Runsc | null>;
  readonly rootless: boolean;
  readonly cgroups: Cgroups;
  /** Why checkpoints do not work here, when that was learned. */
  readonly coldReason: string | null;
}

const OLD_AFTER_DAYS = 365;

export async function preflightGvisor({ locateRunsc, rootless, cgroups, coldReason }: PreflightOptions): Promise<Preflight> {
  if (process.platform !== "linux") return unusable("gVisor runs on Linux only.", "Run Sluice on a Linux machine.");
  if (process.arch !== "x64" && process.arch !== "arm64")
    return unusable(`gVisor does not run on ${process.arch} processors.`, "Use a machine with an x86-64 or ARM64 processor.");
  if (!rootless && process.getuid?.() !== 0)
    return unusable("The gvisor driver needs root, and this process is not root.", "Run as root, or ask for the driver gvisor-rootless.");
  if (rootless && !(await canMakeUserNamespace()))
    return unusable(
      "This user may not make a user namespace, which gvisor-rootless needs.",
      "Run as root and use the gvisor driver, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0).",
    );
  try {
    const runsc = await locateRunsc();
    if (runsc === null) return { usable: false, ...runscMissing };
    const notes = toNotes({ runsc, rootless, cgroups, coldReason });
    return { usable: true, version: `runsc ${runsc.version} (${describeAge(runsc)})`, notes };
  } catch (error) {
    return unusable(`runsc does not run here: ${(error as Error).message}`, "Install a runsc for this processor and kernel.");
  }
}

function unusable(reason: string, fix: string): Preflight {
  return { usable: false, reason, fix };
}

/** A few milliseconds, and surer than to read the several settings that may forbid it. */
async function canMakeUserNamespace(): Promise<boolean> {
  const [program, ...words] = [...userNamespaceCommand, "/bin/true"];
  return promisify(execFile)(program, words, { timeout: 5_000, env: {} }).then(
    () => true,
    () => false,
  );
}

type Facts = Omit<PreflightOptions, "locateRunsc"> & { readonly runsc: Runsc };

function toNotes({ runsc, rootless, cgroups, coldReason }: Facts): string[] {
  const notes: string[] = [];
  if (runsc.releasedAt !== null && Date.now() - runsc.releasedAt.getTime() > OLD_AFTER_DAYS * 86_400_000) {
    notes.push(`This runsc is old (${describeAge(runsc)}); fixes made since are missing. A newer one on PATH is used instead.`);
  }
  if (!cgroups.available)
    notes.push(
      `No cgroup limits: ${cgroups.reason} Memory is watched from outside every 25 ms instead; the number of processes is limited inside the sandbox only.`,
    );
  if (rootless)
    notes.push(
      "Rootless: the processes of gVisor run as the user that started Sluice, not as nobody, so a break-out would have that user's rights.",
    );
  if (coldReason !== null) notes.push(`Checkpoints do not work here, so each sandbox imports the stack anew: ${coldReason}`);
  return notes;
}
