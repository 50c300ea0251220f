import { totalmem } from "node:os";
import { z } from "zod";
import { UsageError } from "../errors/sluice-error.ts";
import { count, countOrNone, milliseconds } from "../protocol/setting.ts";
import type { DriverName } from "./contract.ts";

const KB = 1024;
const MB = 1024 * KB;

/** All limits of a sandbox. When a cell reaches a limit, the outcome names the limit and its value. */
export const sandboxLimitsSchema = z.strictObject({
  cellTimeoutMs: milliseconds
    .default(60_000)
    .describe("time limit for a cell's code; queueing, start-up and sending inputs are not included"),
  leaseTimeoutMs: milliseconds.default(15 * 60_000).describe("longest life of one sandbox"),
  memoryBytes: count.default(2048 * MB).describe("memory of the whole sandbox, including scratch files"),
  processes: count.default(64).describe("processes and threads"),
  scratchBytes: count.default(512 * MB).describe("total size of the files that cells write"),
  openFiles: count.default(1024).describe("open files per process"),
  codeBytes: count.default(256 * KB).describe("size of one cell's code"),
  stdoutBytes: countOrNone
    .default(1 * MB)
    .describe("standard output that is kept; the middle of longer output is cut, and the cell continues"),
  stderrBytes: countOrNone.default(1 * MB).describe("the same for standard error"),
  resultBytes: count.default(10 * MB).describe("size of a cell's result as JSON"),
  artifacts: countOrNone.default(20).describe("figures and charts per cell"),
  artifactBytes: count.default(10 * MB).describe("size of one picture"),
  artifactDataBytes: count
    .default(2 * MB)
    .describe("size of the data behind one figure, and of one chart with its rows; `save_figure` leaves out series that do not fit"),
  cellArtifactBytes: count.default(64 * MB).describe("total size of the pictures and data of a cell"),
  turnArtifactBytes: count.default(256 * MB).describe("total size of the pictures and data of all cells of a turn"),
  inputBytes: countOrNone.default(256 * MB).describe("total size of the inputs of a cell session"),
});

export type SandboxLimits = Readonly<z.infer<typeof sandboxLimitsSchema>>;

export const defaultLimits: SandboxLimits = Object.freeze(sandboxLimitsSchema.parse({}));

/** Which driver opens sandboxes, and how many sandboxes there are. */
export const sandboxSettingsSchema = z.strictObject({
  driver: z
    .enum(["auto", "gvisor", "gvisor-rootless", "bubblewrap"] satisfies ("auto" | DriverName)[])
    .default("auto")
    .describe("`gvisor`, `gvisor-rootless` or `bubblewrap`; `auto` selects the strongest driver that passes its self-test"),
  poolSize: countOrNone.default(1).describe("sandboxes to keep warm"),
  maxSandboxes: count.optional().describe("most sandboxes at the same time; default: as many as fit in 75 % of memory"),
  queueDeadlineMs: milliseconds.default(60_000).describe("how long a call may wait for a sandbox"),
});

export type SandboxSettings = Readonly<z.infer<typeof sandboxSettingsSchema>>;

export const defaultSandboxSettings: SandboxSettings = sandboxSettingsSchema.parse({});

/** The default limits with `changes` applied. Throws a UsageError for a value that no driver could enforce. */
export function withLimits(changes: Partial<SandboxLimits>): SandboxLimits {
  const limits = Object.freeze({ ...defaultLimits, ...changes });
  const names = Object.keys(sandboxLimitsSchema.shape) as (keyof SandboxLimits)[];
  const wrong = names.find((name) => !sandboxLimitsSchema.shape[name].unwrap().safeParse(limits[name]).success);
  if (wrong === undefined) return limits;
  const { minValue, maxValue } = sandboxLimitsSchema.shape[wrong].unwrap();
  throw new UsageError({
    code: "WRONG_LIMIT",
    message: `The limit ${wrong} is ${limits[wrong]}. It must be a whole number from ${minValue} to ${maxValue}.`,
    details: { name: wrong, value: limits[wrong] },
  });
}

/** How many sandboxes fit in 75 % of memory if each uses its whole limit; at least two. */
export function defaultMaxSandboxes({ memoryBytes }: SandboxLimits, machineBytes: number = availableMemory()): number {
  return Math.max(2, Math.floor((0.75 * machineBytes) / memoryBytes));
}

/** The machine's memory, or the memory limit of the container or service we run in. */
function availableMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity);
}
