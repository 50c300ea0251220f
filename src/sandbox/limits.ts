import { UsageError } from "../errors/sluice-error.ts";
import type { SandboxLimits } from "./contract.ts";

const KB = 1024;
const MB = 1024 * KB;

/** Every limit of a sandbox, as data. Each can be set; a limit that was hit is named in the outcome with its number. */
export const defaultLimits: SandboxLimits = Object.freeze({
  cellTimeoutMs: 60_000,
  leaseTimeoutMs: 15 * 60_000,
  memoryBytes: 2048 * MB,
  processes: 64,
  scratchBytes: 512 * MB,
  openFiles: 1024,
  codeBytes: 256 * KB,
  stdoutBytes: 1 * MB,
  stderrBytes: 1 * MB,
  resultBytes: 10 * MB,
  artifacts: 20,
  artifactBytes: 10 * MB,
  inputBytes: 256 * MB,
});

/** The longest time that a timer can hold, 24 days. */
export const maxTimeMs: number = 2 ** 31 - 1;

const mayBeNone: ReadonlySet<string> = new Set(["stdoutBytes", "stderrBytes", "artifacts", "inputBytes"]);

/** The defaults with some of them changed. A number that no driver could hold is refused here, before anything starts. */
export function withLimits(changes: Partial<SandboxLimits>): SandboxLimits {
  const limits = Object.freeze({ ...defaultLimits, ...changes });
  for (const [name, value] of Object.entries(limits)) {
    const most = name.endsWith("Ms") ? maxTimeMs : Number.MAX_SAFE_INTEGER;
    if (Number.isInteger(value) && value >= (mayBeNone.has(name) ? 0 : 1) && value <= most) continue;
    throw new UsageError({
      code: "WRONG_LIMIT",
      message: `The limit ${name} is ${value}; it is a whole number from ${mayBeNone.has(name) ? 0 : 1} to ${most}.`,
      hint: "src/sandbox/limits.ts has the defaults.",
      details: { name, value },
    });
  }
  return limits;
}
