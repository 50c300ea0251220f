import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Cgroups } from "../../cgroup/host-cgroups.ts";
import type { Preflight } from "../../contract.ts";

const run = promisify(execFile);
const PROBE_TIMEOUT_MS = 10_000;

export interface BubblewrapPreflightOptions {
  /** The user that forks sandboxes when this process is root. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  readonly cgroups: Cgroups;
}

/** Checks that bwrap is installed and that the user who forks sandboxes may create user namespaces. Runs `/bin/true` in bwrap, but starts no sandbox. */
export async function preflightBubblewrap({ user, cgroups }: BubblewrapPreflightOptions): Promise<Preflight> {
  if (process.platform !== "linux")
    return unusable(`bubblewrap needs Linux, this is ${process.platform}.`, "Run on Linux, or in a Linux virtual machine.");
  if (process.arch !== "x64" && process.arch !== "arm64")
    return unusable(`No seccomp list exists for the architecture ${process.arch}.`, "Run on x86_64 or aarch64.");
  const version = await readVersion();
  if (version === null) return unusable("The program bwrap was not found or does not run.", "Install it: apt-get install bubblewrap");
  for (const { setting, forbids, reason, fix } of userNamespaceSettings)
    if ((await readSetting(setting)) === forbids) return unusable(reason, fix);
  return await probe({ user, cgroups, version });
}

function unusable(reason: string, fix: string): Preflight {
  return { usable: false, reason, fix };
}

async function readVersion(): Promise<string | null> {
  try {
    const { stdout } = await run("bwrap", ["--version"], { timeout: PROBE_TIMEOUT_MS, env: {} });
    return stdout.trim();
  } catch {
    return null;
  }
}

/** Settings of kernels and distributions that turn user namespaces off. */
const userNamespaceSettings = [
  {
    setting: "kernel/unprivileged_userns_clone",
    forbids: "0",
    reason: "Unprivileged user namespaces are turned off on this machine (kernel.unprivileged_userns_clone is 0).",
    fix: "Turn them on: sysctl -w kernel.unprivileged_userns_clone=1",
  },
  {
    setting: "user/max_user_namespaces",
    forbids: "0",
    reason: "This machine allows no user namespaces (user.max_user_namespaces is 0).",
    fix: "Allow some: sysctl -w user.max_user_namespaces=10000",
  },
  {
    setting: "kernel/apparmor_restrict_unprivileged_userns",
    forbids: "1",
    reason: "AppArmor removes all capabilities in user namespaces on this machine (kernel.apparmor_restrict_unprivileged_userns is 1).",
    fix: "Turn the restriction off: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
  },
] as const;

async function readSetting(name: string): Promise<string | null> {
  try {
    return (await readFile(`/proc/sys/${name}`, "latin1")).trim();
  } catch {
    return null; // this kernel does not have the setting
  }
}

/** Containers can forbid namespaces in several ways, so try it: create a user namespace with its own /proc and tmpfs. */
async function probe({ user, cgroups, version }: BubblewrapPreflightOptions & { version: string }): Promise<Preflight> {
  const args = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp", "--", "/bin/true"];
  try {
    await run("bwrap", args, { timeout: PROBE_TIMEOUT_MS, env: {}, cwd: "/", ...user });
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr?.trim() || (error as Error).message;
    return unusable(
      `A user namespace could not be created${user === null ? "" : ` as uid ${user.uid}`}: ${reason}`,
      "In a container, allow user namespaces and an unmasked /proc (for example --security-opt seccomp=unconfined --security-opt systempaths=unconfined); on a host, see docs/drivers/bubblewrap.md.",
    );
  }
  const notes = cgroups.available
    ? []
    : [`Without a cgroup, a watcher limits memory by polling twenty times a second, and an rlimit limits processes. ${cgroups.reason}`];
  return { usable: true, version, notes };
}
