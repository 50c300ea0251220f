import { basename } from "node:path";
import { rmdir } from "node:fs/promises";
import { fromProcessKey, type ProcessIdentity, toProcessKey } from "../host-process.ts";
import { killProcesses, listChildren, removeCgroup } from "./cgroup-files.ts";
import type { Cgroups } from "./find-cgroups.ts";
import { hostCgroupPrefix } from "./host-cgroup-name.ts";

/** Host processes that have, or had, cgroups here. */
export async function listHostCgroups(cgroups: Cgroups): Promise<ProcessIdentity[]> {
  const children = (await Promise.all(toParents(cgroups).map((parent) => listChildren(parent)))).flat();
  const keys = new Set(children.map((child) => basename(child)).filter((name) => name.startsWith(hostCgroupPrefix)));
  return [...keys].map((name) => fromProcessKey(name.slice(hostCgroupPrefix.length))).filter((identity) => identity !== null);
}

/** Kills what runs in the cgroups of one host process and removes them. */
export async function removeHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  const directories = toHostDirectories(cgroups, host);
  await killProcesses(directories, 3_000);
  await Promise.all(directories.map((directory) => removeCgroup(directory, 2_000)));
}

/** The host's own directory, once its last sandbox is gone. */
export async function removeEmptyHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  for (const directory of toHostDirectories(cgroups, host)) await rmdir(directory).catch(() => {});
}

function toHostDirectories(cgroups: Cgroups, host: ProcessIdentity): string[] {
  return toParents(cgroups).map((parent) => `${parent}/${hostCgroupPrefix}${toProcessKey(host)}`);
}

function toParents(cgroups: Cgroups): string[] {
  if (!cgroups.available) return [];
  return [...new Set(cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent])];
}
