import { SluiceError } from "../errors/sluice-error.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import type { CellRequest, CellSession } from "../cells/open-cell-session.ts";
import { formatProbe, type ProbeSink, type ProbeValue } from "../protocol/probe.ts";

export interface PythonCall extends Omit<CellRequest, "onStart"> {
  readonly cellSession: CellSession;
  readonly turnId: string;
  readonly onProbe: ProbeSink;
}

const SOURCE = "python-sandbox-latency-probe";

/** A call that failed before any Python ran. */
export interface UnrunCall {
  readonly turnId: string;
  readonly stage: "queue" | "contract" | "start";
  /** An error code, or "aborted". */
  readonly status: string;
  readonly error: string;
}

/** Emits the probe of a call that ran no Python, so that every call has one. */
export function probeUnrunCall(onProbe: ProbeSink, { turnId, stage, status, error }: UnrunCall): void {
  onProbe(formatProbe(SOURCE, "python_call_failure", { turnId, stage, status, exitCode: null, error: error.slice(0, 500) }));
}

/** Runs one cell and emits two probes: one when it starts and one when it succeeds or fails. */
export async function runPythonInSandbox(call: PythonCall): Promise<CellOutcome> {
  const { cellSession, turnId, onProbe, ...request } = call;
  const probe = (event: string, fields: Record<string, ProbeValue>): void => onProbe(formatProbe(SOURCE, event, { turnId, ...fields }));
  let sandboxId: string | undefined;
  let boot: "warm" | "cold" | undefined;
  let outcome: CellOutcome;
  try {
    outcome = await cellSession.run({
      ...request,
      onStart: (sandbox) => {
        sandboxId = sandbox.id;
        boot = sandbox.reused || sandbox.start === "pool" ? "warm" : "cold";
        const { inputAliasCount, inputsBytes } = sandbox;
        probe("python_call_start", { inputsBytes, codeBytes: Buffer.byteLength(request.code), inputAliasCount, sandboxId, boot });
      },
    });
  } catch (error) {
    const aborted = request.signal?.aborted === true;
    const code = error instanceof SluiceError ? error.code : "INTERNAL_ERROR";
    probe("python_call_failure", {
      stage: sandboxId === undefined ? "start" : "run",
      status: aborted ? "aborted" : code,
      exitCode: null,
      error: (error instanceof Error ? error.message : String(error)).slice(0, 500),
      sandboxId,
    });
    throw error;
  }
  const measured = {
    sandboxId: outcome.sandbox.id,
    driver: outcome.sandbox.driver,
    start: outcome.sandbox.start,
    boot,
    ...outcome.timing,
    peakMemoryBytes: outcome.usage.peakMemoryBytes,
    cpuMs: outcome.usage.cpuMs,
  };
  if (outcome.status === "ok") {
    const count = (kind: string): number => outcome.artifacts.filter((artifact) => artifact.kind === kind).length;
    probe("python_call_success", {
      stdoutChars: outcome.stdout.length,
      artifactCount: outcome.artifacts.length,
      imageCount: count("image"),
      chartCount: count("chart"),
      ...measured,
    });
  } else {
    probe("python_call_failure", {
      stage: "run",
      status: outcome.status,
      exitCode: outcome.exitCode ?? null,
      error: `${outcome.error?.type ?? "Error"}: ${outcome.error?.message ?? ""}`.slice(0, 500),
      ...measured,
    });
  }
  return outcome;
}
