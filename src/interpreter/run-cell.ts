import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { SandboxLostError } from "../errors/sluice-error.ts";
import type { CellArtifact, CellError, CellStatus } from "../protocol/outcome.ts";
import { runningFrame, type RunningFrame } from "../protocol/worker-frames.ts";
import type { Frame, Lease, SandboxLimits } from "../sandbox/contract.ts";
import { outOfPlace } from "../sandbox/out-of-place.ts";
import { createStreamText, type StreamText } from "./cell-output.ts";
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

/** How one run of a cell in one sandbox went. `leaseUsable` says whether the sandbox holds the state from before (or, when ok, after) the cell. */
export interface CellRun {
  status: CellStatus;
  resultJson: string | null;
  stdout: StreamText;
  stderr: StreamText;
  artifacts: CellArtifact[];
  diagnostics: Record<string, unknown>;
  error?: CellError;
  runMs: number;
  usage: { peakMemoryBytes: number; cpuMs: number };
  exitCode?: number;
  leaseUsable: boolean;
  /** The caller gave up while it ran. */
  aborted: boolean;
}

/** How long the worker gets to end a cell before the whole sandbox is ended. */
const INTERRUPT_GRACE_MS = 1_000;
const ABORT_GRACE_MS = 150;
/** Slack over the output limits for the marker bytes; past it the sandbox does not cut as it must. */
const OUTPUT_SLACK_BYTES = 64 * 1024;

export async function runCell(options: RunCellOptions): Promise<CellRun> {
  const { lease, limits } = options;
  const before = await lease.resetPeak();
  options.signal?.throwIfAborted();
  const stop = createStop(options);
  const streams = {
    stdout: createStreamText({ name: "stdout", limitBytes: limits.stdoutBytes, onText: (text) => hear("stdout", text) }),
    stderr: createStreamText({ name: "stderr", limitBytes: limits.stderrBytes, onText: (text) => hear("stderr", text) }),
  };
  const hear: NonNullable<RunCellOptions["onOutput"]> = (stream, text) => {
    if (!stop.isAbandoned) options.onOutput?.(stream, text);
  };
  const checks: Promise<CheckedArtifact>[] = [];
  const started = performance.now();
  let end: CellEnd;
  let runMs: number;
  let checked: CheckedArtifact[];
  try {
    end = await Promise.race([converse(options, streams, checks), stop.abandoned]);
    runMs = performance.now() - started;
    stop.cellIsOver();
    checked = await Promise.race([Promise.all(checks), stop.aborted]);
  } finally {
    stop.clear();
  }
  const artifacts = checked.flatMap((one) => (one.ok ? [one.artifact] : []));
  const refused = checked.find((one) => !one.ok);
  const after = stop.isAbandoned ? before : await lease.usage().catch(() => before);
  const usage = { peakMemoryBytes: after.peakMemoryBytes, cpuMs: Math.max(0, after.cpuMs - before.cpuMs) };
  const verdict = await judgeCell({ end, options, stopped: stop.reason, before, after, runMs, artifacts, refused: refused?.why });
  // Whose grace was over is being ended, also when its worker's last word came after all.
  const leaseUsable = !stop.endsLease && (await decide(options, end, verdict, stop.reason));
  const aborted = stop.reason === "aborted";
  const closing = leaseUsable ? undefined : lease.close();
  if (!aborted) await closing; // who gave up does not wait for what is left to clean up
  return { ...streams, artifacts: verdict.status === "ok" ? artifacts : [], runMs, usage, aborted, ...verdict, leaseUsable };
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
async function converse(
  options: RunCellOptions,
  streams: Record<"stdout" | "stderr", StreamText>,
  checks: Promise<CheckedArtifact>[],
): Promise<CellEnd> {
  const { lease, cell, code, rollback, names, expect, limits } = options;
  const { stdoutBytes, stderrBytes, resultBytes, artifactBytes } = limits;
  try {
    await lease.channel.send(
      {
        type: "cell",
        cell,
        rollback,
        names,
        expect,
        limits: { stdoutBytes, stderrBytes, resultBytes, artifactBytes, artifacts: limits.artifacts },
      },
      code,
    );
    for (;;) {
      const raw = await lease.channel.receive();
      if (raw === null) return { lost: "it closed its channel" };
      const frame = toRunningFrame(raw, cell);
      if (frame.type === "done" || frame.type === "ended") return { frame, body: raw.body };
      if (frame.type === "lost") return { lost: frame.detail };
      if (frame.type === "output") takeOutput(streams[frame.stream], raw.body, frame.omittedBytes ?? 0, limits);
      else {
        if (checks.length >= limits.artifacts) return { refused: `there are more than ${limits.artifacts} artifacts` };
        checks.push(checkArtifact({ frame, body: raw.body, limits, images: options.images }));
      }
    }
  } catch (error) {
    if (error instanceof SandboxLostError) return { lost: error.message, byHost: error.code === "SANDBOX_PROTOCOL" };
    throw error;
  }
}

function takeOutput(stream: StreamText, body: Uint8Array, omittedBytes: number, limits: SandboxLimits): void {
  stream.add(body, omittedBytes);
  if (stream.receivedBytes > Math.max(limits.stdoutBytes, limits.stderrBytes) + OUTPUT_SLACK_BYTES)
    throw outOfPlace("more output than was allowed");
}

function toRunningFrame(raw: Frame, cell: number): RunningFrame {
  const parsed = runningFrame.safeParse(raw.header);
  if (!parsed.success) throw outOfPlace(`a frame of type ${JSON.stringify(raw.header.type).slice(0, 60)} that does not belong there`);
  if ("cell" in parsed.data && parsed.data.cell !== cell) throw outOfPlace(`a frame for cell ${parsed.data.cell} while cell ${cell} runs`);
  return parsed.data;
}
