import { totalmem } from "node:os";
import type { SandboxLimits } from "./contract.ts";

/** How many sandboxes fit three quarters of the memory that there is, each with all that it may take; at least two. */
export function placesFor({ memoryBytes }: SandboxLimits, machineBytes: number = memoryHere()): number {
  return Math.max(2, Math.floor((0.75 * machineBytes) / memoryBytes));
}

/** The machine's, or what a container or service is allowed of it. */
function memoryHere(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity);
}
