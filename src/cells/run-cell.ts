import type { ArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { runningFrame, type RunningFrame } from "../protocol/worker-frames.ts";
import type { ByteCount, ByteLimit } from "../sandbox/arriving-contents.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import { createStreamText, runInWorker, type StreamText, type WorkerRun } from "../sandbox/run-in-worker.ts";
import { checkArtifact, type CheckedArtifact } from "./check-artifact.ts";
import { judgeCell, type CellEnd, type CellVerdict } from "./judge-cell.ts";

export interface RunCellOptions {
  readonly lease: Lease;
  /** Number of the cell. Frames with another number are rejected. */
  readonly cell: number;
  readonly code: Uint8Array;
  /** "fork": the worker can undo the cell itself. "none": if the cell fails, its sandbox is closed. */
  readonly rollback: "fork" | "none";
  readonly names: Readonly<Record<string, string>>;
  /** The artifact kinds that must be emitted, exactly; null accepts any. */
  readonly expect: readonly string[] | null;
  readonly limits: SandboxLimits;
  /** Bytes of pictures and data that the cells of the turn have sent. Grows as they arrive. Default: this cell is the first of its turn. */
  readonly turnArtifacts?: ByteCount | undefined;
  /** Time until the lease expires. The cell is ended then even if its own time limit is longer. */
  readonly leaseLeftMs?: number;
  readonly artifactChecker: ArtifactChecker;
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  readonly signal?: AbortSignal;
}

/** A cell's outcome in one sandbox. The cell session adds how the sandbox was started and how long the caller waited. */
export interface ExecutedCell extends Omit<CellOutcome, "timing" | "sandbox"> {
  runMs: number;
  /** Whether the sandbox still holds a valid state: the one after a successful cell, or the one before a failed cell. */
  leaseUsable: boolean;
  /** Whether the caller aborted while the cell ran. */
  aborted: boolean;
}

/** How long the worker has to end an interrupted cell before the whole sandbox is killed. */
const INTERRUPT_GRACE_MS = 1_000;
const ABORT_GRACE_MS = 150;

/** Runs one cell in a sandbox. Never throws for what the code did; rejects if `signal` is already aborted. */
export async function runCell(options: RunCellOptions): Promise<ExecutedCell> {
  const { lease, limits } = options;
  const before = await lease.resetPeak();
  options.signal?.throwIfAborted();
  const stopper = createStopper(options);
  const createStream = (name: "stdout" | "stderr", limitBytes: number): StreamText =>
    createStreamText({
      toMark: (omitted) => `\n… [${omitted} bytes of ${name} omitted here; the limit is ${limitBytes} bytes] …\n`,
      onText: (text) => (stopper.isSandboxKilledByAbort ? undefined : options.onOutput?.(name, text)),
    });
  const streams = { stdout: createStream("stdout", limits.stdoutBytes), stderr: createStream("stderr", limits.stderrBytes) };
  const checks: Promise<CheckedArtifact>[] = [];
  const startedAt = performance.now();
  let end: CellEnd;
  let runMs: number;
  let checked: CheckedArtifact[];
  try {
    end = await Promise.race([exchangeFrames(options, { streams, checks, onRefused: stopper.refuse }), stopper.sandboxKilledByAbort]);
    runMs = performance.now() - startedAt;
    stopper.stopTimers();
    checked = await Promise.race([Promise.all(checks), stopper.aborted]);
  } finally {
    stopper.dispose();
  }
  const artifacts = checked.flatMap((one) => (one.ok ? [one.artifact] : []));
  const rejected = checked.find((one) => !one.ok);
  const after = stopper.isSandboxKilledByAbort ? before : await lease.usage().catch(() => before);
  const usage = { peakMemoryBytes: after.peakMemoryBytes, cpuMs: roundMs(Math.max(0, after.cpuMs - before.cpuMs)) };
  const verdict = await judgeCell({ end, options, stopped: stopper.reason, before, after, runMs, artifacts, rejected: rejected?.why });
  // A sandbox whose grace period ended is being killed, even if the worker's last frame still arrived.
  const leaseUsable = !stopper.isKillingSandbox && (await commitOrRollBack(options, end, verdict, stopper.reason));
  const aborted = stopper.reason === "aborted";
  const closing = leaseUsable ? undefined : lease.close();
  if (!aborted) await closing; // after an abort, the caller does not wait for the clean-up
  return {
    schemaVersion: 1,
    ...toOutputFields(streams),
    artifacts: verdict.status === "ok" ? artifacts : [],
    runMs,
    usage,
    aborted,
    ...verdict,
    leaseUsable,
  };
}

/** Sends the cell to the worker and handles its frames until the cell ends. Artifacts are checked while the cell goes on. */
function exchangeFrames(
  options: RunCellOptions,
  { streams, checks, onRefused }: Pick<WorkerRun<RunningFrame>, "streams" | "onRefused"> & { checks: Promise<CheckedArtifact>[] },
): Promise<CellEnd> {
  const { lease, cell, code, rollback, names, expect, limits, turnArtifacts = { bytes: 0 }, artifactChecker } = options;
  const { stdoutBytes, stderrBytes, artifacts } = limits;
  const limit = (name: keyof SandboxLimits): ByteLimit => ({ name, allowed: limits[name] });
  return runInWorker({
    lease,
    firstFrame: { type: "cell", cell, rollback, names, expect, limits: { ...limits, turnArtifactBytesUsed: turnArtifacts.bytes } },
    code,
    frames: runningFrame,
    streams,
    maxOutputBytes: Math.max(stdoutBytes, stderrBytes),
    contentLimits: {
      each: { image: limit("artifactBytes"), data: limit("artifactDataBytes"), result: limit("resultBytes") },
      shared: [
        { ...limit("cellArtifactBytes"), used: { bytes: 0 } },
        { ...limit("turnArtifactBytes"), used: turnArtifacts },
      ],
    },
    onFrame(frame, contents) {
      const [image, data] = [contents.take("image"), contents.take("data")];
      const seen = checks.length + 1;
      if (seen > artifacts)
        return {
          message: `The cell sent more than ${artifacts} figures and charts.`,
          limit: { name: "artifacts", allowed: artifacts, seen },
        };
      checks.push(checkArtifact({ frame, image, data, artifactChecker, signal: options.signal }));
      return null;
    },
    onRefused,
  });
}

/**
 * Tells the worker whether to keep a cell that it reports as successful: the host's checks decide. Returns whether the sandbox can be used for the next
 * cell.
 */
async function commitOrRollBack(
  { lease, rollback }: RunCellOptions,
  end: CellEnd,
  verdict: CellVerdict,
  stopped: CellStopReason | null,
): Promise<boolean> {
  const hasSucceeded = "frame" in end && end.frame.type === "done" && end.frame.status === "ok";
  if (!hasSucceeded) return verdict.leaseUsable;
  const isAccepted = verdict.status === "ok" && stopped !== "aborted";
  if (rollback === "none") return isAccepted;
  return await lease.channel.send({ type: isAccepted ? "commit" : "rollback" }).then(
    () => true,
    () => isAccepted, // the next cell finds out that the sandbox is gone
  );
}

function toOutputFields({ stdout, stderr }: Record<"stdout" | "stderr", StreamText>): Pick<CellOutcome, "stdout" | "stderr" | "truncated"> {
  const truncated = {
    ...(stdout.omittedBytes > 0 && { stdout: { omittedBytes: stdout.omittedBytes } }),
    ...(stderr.omittedBytes > 0 && { stderr: { omittedBytes: stderr.omittedBytes } }),
  };
  return { stdout: stdout.text, stderr: stderr.text, ...(Object.keys(truncated).length > 0 && { truncated }) };
}

/** Rounds to a microsecond. */
export function roundMs(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/** Why the host ended a cell: its time limit, the end of the lease, an abort by the caller, or something that it sent and that exceeds a limit. */
export type CellStopReason = "timeout" | "expired" | "aborted" | "refused";

interface Stopper {
  readonly reason: CellStopReason | null;
  readonly isKillingSandbox: boolean;
  readonly isSandboxKilledByAbort: boolean;
  /** Resolves once an abort has killed the sandbox. Frames that arrive later are ignored. */
  readonly sandboxKilledByAbort: Promise<CellEnd>;
  /** Resolves with no artifacts as soon as the caller aborts. */
  readonly aborted: Promise<[]>;
  /** Ends the cell because it sent more than a limit allows. */
  refuse(): void;
  /** Stops the timers. Checking artifacts does not count towards the cell's time limit. */
  stopTimers(): void;
  dispose(): void;
}

/** Ends the cell on timeout, abort or refusal: through the worker if that keeps the sandbox, otherwise by killing the sandbox. */
function createStopper({ lease, cell, rollback, limits, leaseLeftMs = Infinity, signal }: RunCellOptions): Stopper {
  let reason: CellStopReason | null = null;
  let graceTimer: NodeJS.Timeout | undefined;
  let isKillingSandbox = false;
  let isCellOver = false;
  const aborted = Promise.withResolvers<[]>();
  const sandboxKilledByAbort = Promise.withResolvers<CellEnd>();
  const killSandbox = (): void => {
    isKillingSandbox = true;
    void lease.close();
    if (reason === "aborted") sandboxKilledByAbort.resolve({ lost: "the caller aborted" });
  };
  const stop = (why: CellStopReason): void => {
    if (reason !== null) return;
    reason = why;
    if (isCellOver) return;
    if (rollback === "none" || why === "expired") return killSandbox();
    graceTimer = setTimeout(killSandbox, why === "aborted" ? ABORT_GRACE_MS : INTERRUPT_GRACE_MS);
    lease.channel.send({ type: "interrupt", cell }).catch(() => {});
  };
  const timer =
    leaseLeftMs < limits.cellTimeoutMs
      ? setTimeout(() => stop("expired"), leaseLeftMs)
      : setTimeout(() => stop("timeout"), limits.cellTimeoutMs);
  const onAbort = (): void => {
    stop("aborted");
    aborted.resolve([]);
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  const stopTimers = (): void => {
    isCellOver = true;
    clearTimeout(timer);
    clearTimeout(graceTimer);
  };
  return {
    get reason() {
      return reason;
    },
    get isKillingSandbox() {
      return isKillingSandbox;
    },
    get isSandboxKilledByAbort() {
      return isKillingSandbox && reason === "aborted";
    },
    aborted: aborted.promise,
    sandboxKilledByAbort: sandboxKilledByAbort.promise,
    refuse: () => stop("refused"),
    stopTimers,
    dispose() {
      stopTimers();
      signal?.removeEventListener("abort", onAbort);
    },
  };
}
