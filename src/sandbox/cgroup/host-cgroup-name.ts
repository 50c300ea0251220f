import { currentProcess, toProcessKey } from "../host-process.ts";

/** All cgroups of one host process are below one directory of this name, so that what a dead host left can be found. */
export function hostCgroupName(): string {
  return `${hostCgroupPrefix}${toProcessKey(currentProcess())}`;
}

export const hostCgroupPrefix = "sluice-";
