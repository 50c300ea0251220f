import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Cgroups } from "../../cgroup/find-cgroups.ts";
import type { Preflight } from "../../contract.ts";

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 10_000;

export interface CheckOptions {
  readonly bwrapPath: string;
  /** As whom sandboxes are made when this process is root. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  readonly cgroups: Cgroups;
}

/** Whether bwrap is there and the user that forks sandboxes may make user namespaces. Starts `true`, no sandbox. */
export async function preflightBubblewrap({ bwrapPath, user, cgroups }: CheckOptions): Promise<Preflight> {
  if (process.platform !== "linux")
    return unusable(`bubblewrap needs Linux, this is ${process.platform}.`, "Run on Linux, or in a Linux virtual machine.");
  if (process.arch !== "x64" && process.arch !== "arm64")
    return unusable(`There is no seccomp list for the architecture ${process.arch}.`, "Run on x86_64 or aarch64.");
  const version = await readVersion(bwrapPath);
  if (version === null)
    return unusable(`The program ${bwrapPath} was not found or does not run.`, "Install it: apt-get install bubblewrap");
  for (const { setting, forbids, reason, fix } of switches) if ((await readSetting(setting)) === forbids) return unusable(reason, fix);
  return await probe({ bwrapPath, user, cgroups, version });
}

function unusable(reason: string, fix: string): Preflight {
  return { usable: false, reason, fix };
}

async function readVersion(bwrapPath: string): Promise<string | null> {
  try {
    const { stdout } = await run(bwrapPath, ["--version"], { timeout: PROBE_TIMEOUT_MS, env: {} });
    return stdout.trim();
  } catch {
    return null;
  }
}

/** The settings of kernels and distributions that turn user namespaces off, each with its own way to turn them on. */
const switches = [
  {
    setting: "kernel/unprivileged_userns_clone",
    forbids: "0",
    reason: "Unprivileged user namespaces are turned off here (kernel.unprivileged_userns_clone is 0).",
    fix: "Turn them on: sysctl -w kernel.unprivileged_userns_clone=1",
  },
  {
    setting: "user/max_user_namespaces",
    forbids: "0",
    reason: "No user namespace may be made here (user.max_user_namespaces is 0).",
    fix: "Allow some: sysctl -w user.max_user_namespaces=10000",
  },
  {
    setting: "kernel/apparmor_restrict_unprivileged_userns",
    forbids: "1",
    reason: "AppArmor takes every capability away in user namespaces here (kernel.apparmor_restrict_unprivileged_userns is 1).",
    fix: "Turn the restriction off: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
  },
] as const;

async function readSetting(name: string): Promise<string | null> {
  try {
    return (await readFile(`/proc/sys/${name}`, "latin1")).trim();
  } catch {
    return null; // this kernel has no such switch
  }
}

/** Containers forbid namespaces in ways of their own, so it is tried: a user namespace with its own /proc and tmpfs. */
async function probe({ bwrapPath, user, cgroups, version }: CheckOptions & { version: string }): Promise<Preflight> {
  const args = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp", "--", "/bin/true"];
  try {
    await run(bwrapPath, args, { timeout: PROBE_TIMEOUT_MS, env: {}, cwd: "/", ...user });
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim() || (error as Error).message;
    return unusable(
      `A namespace could not be made${user === null ? "" : ` as uid ${user.uid}`}: ${said}`,
      "In a container, allow user namespaces and an unmasked /proc (for example --security-opt seccomp=unconfined --security-opt systempaths=unconfined); on a host, see docs/drivers/bubblewrap.md.",
    );
  }
  const notes = cgroups.available
    ? []
    : [`Without a cgroup, memory is limited by a watcher that looks twenty times a second, and processes by an rlimit. ${cgroups.reason}`];
  return { usable: true, version, notes };
}
