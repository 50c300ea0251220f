import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { runningFrame } from "../protocol/worker-frames.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import { runInWorker, createStreamText, type StreamText } from "../sandbox/run-in-worker.ts";
import { checkArtifact, type CheckedArtifact } from "./check-artifact.ts";
import { judgeCell, type CellEnd, type CellVerdict } from "./judge-cell.ts";

export interface RunCellOptions {
  readonly lease: Lease;
  /** Number of the cell; tells its frames from those of another. */
  readonly cell: number;
  readonly code: Uint8Array;
  /** "fork": the worker itself can undo the cell. "none": a cell that fails takes its sandbox with it. */
  readonly rollback: "fork" | "none";
  readonly names: Readonly<Record<string, string>>;
  /** Kinds that must be emitted, exactly; null accepts any. */
  readonly expect: readonly string[] | null;
  readonly limits: SandboxLimits;
  /** How long the sandbox may still live; the cell ends with it at the latest. */
  readonly leaseLeftMs?: number;
  readonly images: ImageChecker;
  readonly onOutput?: ((stream: "stdout" | "stderr", text: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The outcome of a cell in one sandbox. The session adds how the sandbox was started and how long the caller waited. */
export interface RanCell extends Omit<CellOutcome, "timing" | "sandbox"> {
  runMs: number;
  /** Whether the sandbox holds the state from before (or, when ok, after) the cell. */
  leaseUsable: boolean;
  /** The caller gave up while it ran. */
  aborted: boolean;
}

/** How long the worker gets to end a cell before the whole sandbox is ended. */
const INTERRUPT_GRACE_MS = 1_000;
const ABORT_GRACE_MS = 150;

export async function runCell(options: RunCellOptions): Promise<RanCell> {
  const { lease, limits } = options;
  const before = await lease.resetPeak();
  options.signal?.throwIfAborted();
  const stop = createStop(options);
  const streamOf = (name: "stdout" | "stderr", limitBytes: number): StreamText =>
    createStreamText({
      toMark: (omitted) => `\n… [${omitted} bytes of ${name} omitted here; the limit is ${limitBytes} bytes] …\n`,
      onText: (text) => (stop.isAbandoned ? undefined : options.onOutput?.(name, text)),
    });
  const streams = { stdout: streamOf("stdout", limits.stdoutBytes), stderr: streamOf("stderr", limits.stderrBytes) };
  const checks: Promise<CheckedArtifact>[] = [];
  const started = performance.now();
  let end: CellEnd;
  let runMs: number;
  let checked: CheckedArtifact[];
  try {
    end = await Promise.race([talk(options, streams, checks), stop.abandoned]);
    runMs = performance.now() - started;
    stop.cellIsOver();
    checked = await Promise.race([Promise.all(checks), stop.aborted]);
  } finally {
    stop.clear();
  }
  const artifacts = checked.flatMap((one) => (one.ok ? [one.artifact] : []));
  const refused = checked.find((one) => !one.ok);
  const after = stop.isAbandoned ? before : await lease.usage().catch(() => before);
  const usage = { peakMemoryBytes: after.peakMemoryBytes, cpuMs: roundMs(Math.max(0, after.cpuMs - before.cpuMs)) };
  const verdict = await judgeCell({ end, options, stopped: stop.reason, before, after, runMs, artifacts, refused: refused?.why });
  // Whose grace was over is being ended, also when its worker's last word came after all.
  const leaseUsable = !stop.endsLease && (await decide(options, end, verdict, stop.reason));
  const aborted = stop.reason === "aborted";
  const closing = leaseUsable ? undefined : lease.close();
  if (!aborted) await closing; // who gave up does not wait for what is left to clean up
  return {
    schemaVersion: 1,
    ...textOf(streams),
    artifacts: verdict.status === "ok" ? artifacts : [],
    runMs,
    usage,
    aborted,
    ...verdict,
    leaseUsable,
  };
}

function textOf({ stdout, stderr }: Record<"stdout" | "stderr", StreamText>): Pick<CellOutcome, "stdout" | "stderr" | "truncated"> {
  const truncated = {
    ...(stdout.omittedBytes > 0 && { stdout: { omittedBytes: stdout.omittedBytes } }),
    ...(stderr.omittedBytes > 0 && { stderr: { omittedBytes: stderr.omittedBytes } }),
  };
  return { stdout: stdout.text, stderr: stderr.text, ...(Object.keys(truncated).length > 0 && { truncated }) };
}

/** To a microsecond. */
export function roundMs(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/** A cell that the worker says succeeded counts only once the host has said so; else the worker, where it can, leaves nothing of it. */
async function decide({ lease, rollback }: RunCellOptions, end: CellEnd, verdict: CellVerdict, stopped: Stop["reason"]): Promise<boolean> {
  const succeeded = "frame" in end && end.frame.type === "done" && end.frame.status === "ok";
  const counts = verdict.status === "ok" && stopped !== "aborted";
  if (!succeeded) return verdict.leaseUsable;
  if (rollback === "none") return counts;
  return await lease.channel.send({ type: counts ? "commit" : "rollback" }).then(
    () => true,
    () => counts,
  );
}

/** Why the host ended a cell. */
export type StopReason = "timeout" | "expired" | "aborted";

interface Stop {
  readonly reason: StopReason | null;
  /** The sandbox itself was told to end. */
  readonly endsLease: boolean;
  /** Resolves when the caller gave up and the sandbox is ended because of it: nothing that it still says counts, and nobody waits for it. */
  readonly abandoned: Promise<CellEnd>;
  readonly isAbandoned: boolean;
  /** Resolves when the caller gives up: with nothing, since what it gave out is nobody's any more. */
  readonly aborted: Promise<[]>;
  /** What follows is not the cell's own time, and there is nothing left to interrupt. */
  cellIsOver(): void;
  clear(): void;
}

/** Ends the cell when its time is over or the caller gives up: through the worker where that keeps the sandbox, else with the sandbox. */
function createStop({ lease, cell, rollback, limits, leaseLeftMs = Infinity, signal }: RunCellOptions): Stop {
  let reason: Stop["reason"] = null;
  let grace: NodeJS.Timeout | undefined;
  let endsLease = false;
  let isOver = false;
  let isAbandoned = false;
  const aborted = Promise.withResolvers<[]>();
  const abandoned = Promise.withResolvers<CellEnd>();
  const endLease = (): void => {
    endsLease = true;
    void lease.close();
    if (reason !== "aborted") return;
    isAbandoned = true;
    abandoned.resolve({ lost: "the caller gave up" });
  };
  const stop = (why: StopReason): void => {
    if (reason !== null) return;
    reason = why;
    if (isOver) return;
    if (rollback === "none" || why === "expired") return endLease();
    grace = setTimeout(endLease, why === "aborted" ? ABORT_GRACE_MS : INTERRUPT_GRACE_MS);
    lease.channel.send({ type: "interrupt", cell }).catch(() => {});
  };
  const timer =
    leaseLeftMs < limits.cellTimeoutMs
      ? setTimeout(() => stop("expired"), leaseLeftMs)
      : setTimeout(() => stop("timeout"), limits.cellTimeoutMs);
  const abort = (): void => {
    stop("aborted");
    aborted.resolve([]);
  };
  signal?.addEventListener("abort", abort, { once: true });
  const cellIsOver = (): void => {
    isOver = true;
    clearTimeout(timer);
    clearTimeout(grace);
  };
  return {
    get reason() {
      return reason;
    },
    get endsLease() {
      return endsLease;
    },
    get isAbandoned() {
      return isAbandoned;
    },
    aborted: aborted.promise,
    abandoned: abandoned.promise,
    cellIsOver,
    clear() {
      cellIsOver();
      signal?.removeEventListener("abort", abort);
    },
  };
}

/** Sends the cell and takes its frames until it is over. */
function talk(
  options: RunCellOptions,
  streams: Record<"stdout" | "stderr", StreamText>,
  checks: Promise<CheckedArtifact>[],
): Promise<CellEnd> {
  const { lease, cell, code, rollback, names, expect, limits, images } = options;
  const { stdoutBytes, stderrBytes, resultBytes, artifactBytes, artifacts } = limits;
  return runInWorker({
    lease,
    firstFrame: {
      type: "cell",
      cell,
      rollback,
      names,
      expect,
      limits: { stdoutBytes, stderrBytes, resultBytes, artifactBytes, artifacts },
    },
    code,
    frames: runningFrame,
    streams,
    maxOutputBytes: Math.max(stdoutBytes, stderrBytes),
    onFrame(frame, body) {
      if (checks.length >= artifacts) return `there are more than ${artifacts} artifacts`;
      checks.push(checkArtifact({ frame, body, limits, images }));
      return null;
    },
  });
}
