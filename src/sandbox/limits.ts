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

export function withLimits(changes: Partial<SandboxLimits>): SandboxLimits {
  return Object.freeze({ ...defaultLimits, ...changes });
}
