import type { CellOutcome } from "../protocol/outcome.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import type { CellRun } from "./run-cell.ts";

export interface CellCircumstances {
  readonly timing: { readonly queueMs: number; readonly startMs: number; readonly totalMs: number };
  /** What became of the variables, when the cell ran in a sandbox that took the place of another. */
  readonly replaced: Record<string, unknown> | null;
}

/** How a cell went, as it is told to whoever asked for it. */
export function toCellOutcome(ran: CellRun, { lease, start }: TakenLease, { timing, replaced }: CellCircumstances): CellOutcome {
  const { status, resultJson, artifacts, error, runMs, usage } = ran;
  const truncated = {
    ...(ran.stdout.omittedBytes > 0 ? { stdout: { omittedBytes: ran.stdout.omittedBytes } } : {}),
    ...(ran.stderr.omittedBytes > 0 ? { stderr: { omittedBytes: ran.stderr.omittedBytes } } : {}),
  };
  return {
    schemaVersion: 1,
    status,
    resultJson,
    stdout: ran.stdout.text,
    stderr: ran.stderr.text,
    ...(Object.keys(truncated).length > 0 ? { truncated } : {}),
    artifacts,
    diagnostics: replaced === null ? ran.diagnostics : { ...ran.diagnostics, sandboxReplaced: replaced },
    ...(error ? { error } : {}),
    timing: { queueMs: round(timing.queueMs), startMs: round(timing.startMs), runMs: round(runMs), totalMs: round(timing.totalMs) },
    usage: { peakMemoryBytes: usage.peakMemoryBytes, cpuMs: round(usage.cpuMs) },
    ...(ran.exitCode === undefined ? {} : { exitCode: ran.exitCode }),
    sandbox: { id: lease.id, driver: lease.driver, start },
  };
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
