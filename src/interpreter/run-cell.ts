import { constants } from "node:os";
import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { SandboxLostError } from "../errors/sluice-error.ts";
import type { CellArtifact, CellError, CellStatus } from "../protocol/outcome.ts";
import { runningFrame, type DoneFrame, type EndedFrame, type RunningFrame } from "../protocol/worker-frames.ts";
import type { Frame, Lease, SandboxLimits, Usage } from "../sandbox/contract.ts";
import { createStreamText, type StreamText } from "./cell-output.ts";
import { checkArtifact, type CheckedArtifact } from "./check-artifact.ts";
import { deathOf } from "./death-of.ts";

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

type End = { frame: DoneFrame | EndedFrame; body: Uint8Array } | { lost: string; byHost?: boolean } | { refused: string };

export async function runCell(options: RunCellOptions): Promise<CellRun> {
  const { lease, limits } = options;
  options.signal?.throwIfAborted();
  const before = await lease.resetPeak();
  const stop = createStop(options);
  const streams = {
    stdout: createStreamText({ name: "stdout", limitBytes: limits.stdoutBytes, onText: (text) => options.onOutput?.("stdout", text) }),
    stderr: createStreamText({ name: "stderr", limitBytes: limits.stderrBytes, onText: (text) => options.onOutput?.("stderr", text) }),
  };
  const checks: Promise<CheckedArtifact>[] = [];
  const started = performance.now();
  let end: End;
  try {
    end = await converse(options, streams, checks);
  } finally {
    stop.clear();
  }
  const runMs = performance.now() - started;
  const checked = await Promise.all(checks);
  const artifacts = checked.flatMap((one) => (one.ok ? [one.artifact] : []));
  const refused = checked.find((one) => !one.ok);
  const after = await lease.usage().catch(() => before);
  const usage = { peakMemoryBytes: after.peakMemoryBytes, cpuMs: Math.max(0, after.cpuMs - before.cpuMs) };
  const verdict = await judge({ end, options, stopped: stop.reason, before, after, runMs, artifacts, refused: refused?.why });
  const leaseUsable = await decide(options, end, verdict, stop.reason);
  const aborted = stop.reason === "aborted";
  const closing = leaseUsable ? undefined : lease.close();
  if (!aborted) await closing; // who gave up does not wait for what is left to clean up
  return { ...streams, artifacts: verdict.status === "ok" ? artifacts : [], runMs, usage, aborted, ...verdict, leaseUsable };
}

/** A cell that the worker says succeeded counts only once the host has said so; else the worker, where it can, leaves nothing of it. */
async function decide({ lease, rollback }: RunCellOptions, end: End, verdict: Verdict, stopped: Stop["reason"]): Promise<boolean> {
  const succeeded = "frame" in end && end.frame.type === "done" && end.frame.status === "ok";
  const counts = verdict.status === "ok" && stopped !== "aborted";
  if (!succeeded) return verdict.leaseUsable;
  if (rollback === "none") return counts;
  return await lease.channel.send({ type: counts ? "commit" : "rollback" }).then(
    () => true,
    () => counts,
  );
}

interface Stop {
  readonly reason: "timeout" | "aborted" | null;
  clear(): void;
}

/** Ends the cell when its time is over or the caller gives up: through the worker where that keeps the sandbox, else with the sandbox. */
function createStop({ lease, cell, rollback, limits, signal }: RunCellOptions): Stop {
  let reason: Stop["reason"] = null;
  let grace: NodeJS.Timeout | undefined;
  const stop = (why: "timeout" | "aborted"): void => {
    if (reason !== null) return;
    reason = why;
    if (rollback === "none") return void lease.close();
    grace = setTimeout(() => void lease.close(), why === "aborted" ? ABORT_GRACE_MS : INTERRUPT_GRACE_MS);
    lease.channel.send({ type: "interrupt", cell }).catch(() => {});
  };
  const timer = setTimeout(() => stop("timeout"), limits.cellTimeoutMs);
  const abort = (): void => stop("aborted");
  signal?.addEventListener("abort", abort, { once: true });
  return {
    get reason() {
      return reason;
    },
    clear() {
      clearTimeout(timer);
      clearTimeout(grace);
      signal?.removeEventListener("abort", abort);
    },
  };
}

/** Sends the cell and takes its frames until it is over. */
async function converse(
  options: RunCellOptions,
  streams: Record<"stdout" | "stderr", StreamText>,
  checks: Promise<CheckedArtifact>[],
): Promise<End> {
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

function outOfPlace(what: string): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_PROTOCOL",
    message: `it sent ${what}`,
    hint: "The sandbox was ended. Code that writes to the worker's own descriptors causes this.",
  });
}

interface Judged {
  end: End;
  options: RunCellOptions;
  stopped: Stop["reason"];
  before: Usage;
  after: Usage;
  runMs: number;
  artifacts: CellArtifact[];
  /** Why an artifact was not taken, if one was not. */
  refused: string | undefined;
}

type Verdict = Pick<CellRun, "status" | "resultJson" | "diagnostics" | "leaseUsable" | "exitCode"> & { error?: CellError };

/** The cause, from what the host itself saw; the worker is believed only about the user's own exception. */
async function judge(judged: Judged): Promise<Verdict> {
  const { end, options, stopped, after, before } = judged;
  if ("frame" in end && end.frame.type === "done") return judgeDone(end.frame, end.body, judged);
  const scratchChanged = "frame" in end ? (end.frame.scratchChanged ?? []) : [];
  const diagnostics = scratchChanged.length > 0 ? { scratchChanged } : {};
  const leaseUsable = "frame" in end && options.rollback === "fork";
  const ended = "frame" in end ? (end.frame as EndedFrame) : null;
  const exitCode = ended?.signal !== undefined ? 128 + ended.signal : ended?.exitCode;
  const failed = (status: CellStatus, error: CellError): Verdict => ({
    status,
    resultJson: null,
    diagnostics,
    error,
    leaseUsable,
    ...(exitCode === undefined ? {} : { exitCode }),
  });

  if (stopped !== null) return failed("timeout", timeoutError(judged));
  if ("refused" in end) {
    return failed("contract_violation", { type: "ArtifactRefused", message: `What the cell gave out was refused: ${end.refused}.` });
  }
  const death = leaseUsable || ("lost" in end && end.byHost) ? null : await deathOf(options.lease);
  if (after.memoryKills > before.memoryKills || death?.cause === "out_of_memory") return failed("out_of_memory", memoryError(judged));
  if (ended !== null) return failed("crashed", crashError(ended));
  const why = "lost" in end ? end.lost : "it ended";
  return failed("sandbox_lost", {
    type: "SandboxLost",
    message: `The sandbox is gone: ${why}${death !== null && death.cause !== "closed" ? ` (${death.detail})` : ""}.`,
  });
}

function judgeDone(frame: DoneFrame, body: Uint8Array, judged: Judged): Verdict {
  const { options } = judged;
  const left = frame.leftBehind;
  const diagnostics = {
    ...frame.diagnostics,
    ...(left && (left.threads > 0 || left.processes > 0) ? { leftBehind: left } : {}),
    ...(frame.scratchChanged?.length ? { scratchChanged: frame.scratchChanged } : {}),
  };
  if (frame.status !== "ok") {
    const error = frame.error ?? { type: "Error", message: "the cell failed and did not say how" };
    const leaseUsable = options.rollback === "fork";
    if (frame.status !== "memory_error") return { status: frame.status, resultJson: null, diagnostics, error, leaseUsable };
    const limit = { name: "memoryBytes", allowed: options.limits.memoryBytes, seen: judged.after.peakMemoryBytes };
    return {
      status: "out_of_memory",
      resultJson: null,
      diagnostics,
      error: { ...error, message: memoryMessage(error.message, judged), limit },
      leaseUsable,
    };
  }
  const broken = (status: CellStatus, error: CellError): Verdict => ({ status, resultJson: null, diagnostics, error, leaseUsable: false });
  if (body.length > options.limits.resultBytes) {
    const limit = { name: "resultBytes", allowed: options.limits.resultBytes, seen: body.length };
    return broken("output_limit", {
      type: "OutputLimit",
      message: `The result has ${body.length} bytes of JSON, ${limit.allowed} are allowed.`,
      limit,
    });
  }
  if (judged.refused !== undefined) {
    return broken("contract_violation", { type: "ArtifactRefused", message: `What the cell gave out was refused: ${judged.refused}.` });
  }
  const kinds = new Set(judged.artifacts.map((artifact) => artifact.kind as string));
  if (options.expect !== null && (kinds.size !== options.expect.length || options.expect.some((kind) => !kinds.has(kind)))) {
    const list = (names: Iterable<string>): string => [...names].sort().join(", ") || "none";
    const message = `The call declared ${list(options.expect)} and emitted ${list(kinds)}.`;
    return broken("contract_violation", { type: "ArtifactsNotAsDeclared", message });
  }
  const resultJson = body.length === 0 ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  if (resultJson !== null && !isJson(resultJson)) {
    return broken("contract_violation", { type: "ResultNotJson", message: "The result that the sandbox sent is not JSON." });
  }
  return { status: "ok", resultJson, diagnostics, leaseUsable: true };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function timeoutError({ options, runMs }: Judged): CellError {
  const allowed = options.limits.cellTimeoutMs;
  return {
    type: "Timeout",
    message: `The cell ran longer than its limit of ${allowed / 1000} s and was ended. Compute less, vectorise loops, or work on an aggregate.`,
    limit: { name: "cellTimeoutMs", allowed, seen: Math.round(runMs) },
  };
}

function memoryError(judged: Judged): CellError {
  const limit = { name: "memoryBytes", allowed: judged.options.limits.memoryBytes, seen: judged.after.peakMemoryBytes };
  return { type: "OutOfMemory", message: memoryMessage("The cell was ended because the sandbox ran out of memory", judged), limit };
}

function memoryMessage(what: string, { options, after }: Judged): string {
  const mb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;
  return `${what || "MemoryError"}: the limit is ${mb(options.limits.memoryBytes)}, the peak was ${mb(after.peakMemoryBytes)}.`;
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

function crashError(frame: EndedFrame): CellError {
  const how =
    frame.signal === undefined
      ? `ended by itself with exit status ${frame.exitCode ?? "unknown"} (os._exit, or its channel was closed)`
      : `died by ${signalNames.get(frame.signal) ?? "a signal"} (signal ${frame.signal})`;
  return { type: "Crashed", message: `The process that ran the cell ${how}. Its variables are as they were before the cell.` };
}
