import { isJson } from "../evidence/reading/create-output-reader.ts";
import { readDiagnostics } from "../protocol/diagnostics.ts";
import type { CellArtifact, CellError, CellStatus } from "../protocol/outcome.ts";
import type { DoneFrame, EndedFrame } from "../protocol/worker-frames.ts";
import type { Refusal } from "../sandbox/arriving-contents.ts";
import type { SandboxLimits, Usage } from "../sandbox/contract.ts";
import { findLostCause, type WorkerEnd } from "../sandbox/run-in-worker.ts";
import type { CellStopReason, ExecutedCell, RunCellOptions } from "./run-cell.ts";

/** How the exchange with the worker about a cell ended. */
export type CellEnd = WorkerEnd<DoneFrame | EndedFrame>;

export interface CellFacts {
  readonly end: CellEnd;
  readonly options: RunCellOptions;
  readonly stopped: CellStopReason | null;
  readonly before: Usage;
  readonly after: Usage;
  readonly runMs: number;
  readonly artifacts: readonly CellArtifact[];
  /** Why an artifact was rejected, if one was. */
  readonly rejected?: string;
}

/** The part of an executed cell that is decided here; `runCell` measures the rest. */
export type CellVerdict = Pick<ExecutedCell, "status" | "resultJson" | "diagnostics" | "error" | "exitCode" | "leaseUsable">;

/** Decides how a cell ended from what the host itself observed. The worker is trusted only about exceptions of the user's code. */
export async function judgeCell(facts: CellFacts): Promise<CellVerdict> {
  const { end, stopped } = facts;
  if (end.refused !== undefined && (stopped === null || stopped === "refused")) return judgeRefused(end.refused, facts);
  if (!("frame" in end) || end.frame.type !== "done") return await judgeUnfinished(facts);
  return end.frame.status === "ok" ? await judgeSuccess(end.frame, end.body, facts) : judgeFailure(end.frame, facts);
}

/** The worker reported success: checks the result and the artifacts. */
async function judgeSuccess(frame: DoneFrame, body: Uint8Array, facts: CellFacts): Promise<CellVerdict> {
  const { expect } = facts.options;
  const diagnostics = toDiagnostics(frame, facts);
  const failed = (status: CellStatus, error: CellError): CellVerdict => ({
    status,
    resultJson: null,
    diagnostics,
    error,
    leaseUsable: false,
  });
  if (facts.rejected !== undefined) return failed("contract_violation", artifactRejected(facts.rejected));
  const kinds = new Set(facts.artifacts.map((artifact) => artifact.kind as string));
  if (expect !== null && (kinds.size !== expect.length || expect.some((kind) => !kinds.has(kind)))) {
    const list = (names: Iterable<string>): string => [...names].sort().join(", ") || "none";
    const message = `The call declared ${list(expect)} and emitted ${list(kinds)}.`;
    return failed("contract_violation", { type: "ArtifactsNotAsDeclared", message });
  }
  const resultJson = body.length === 0 ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  if (resultJson !== null && !(await isJson(resultJson))) {
    return failed("contract_violation", { type: "ResultNotJson", message: "The result that the sandbox sent is not JSON." });
  }
  return { status: "ok", resultJson, diagnostics, leaseUsable: true };
}

/** The worker reported an exception or an exceeded limit. */
function judgeFailure(frame: DoneFrame, facts: CellFacts): CellVerdict {
  const { limits, rollback } = facts.options;
  const error = frame.error ?? { type: "Error", message: "the cell failed without giving a reason" };
  const shared = { resultJson: null, diagnostics: toDiagnostics(frame, facts), leaseUsable: rollback === "fork" };
  if (frame.status === "memory_error") {
    const message = toMemoryMessage(error.message || "MemoryError", facts);
    return { ...shared, status: "out_of_memory", error: { ...error, message, limit: toMemoryLimit(facts) } };
  }
  const limit = error.limit ?? (frame.status === "python_error" ? findExceededLimit(error, limits) : undefined);
  return { ...shared, status: frame.status, error: { ...error, ...(limit && { limit }) } };
}

/** The sandbox sent more than a limit allows. Without a last frame of the cell, the worker could not undo it. */
function judgeRefused({ message, limit }: Refusal, facts: CellFacts): CellVerdict {
  const { end, options } = facts;
  const diagnostics = "frame" in end && end.frame.type === "done" ? toDiagnostics(end.frame, facts) : {};
  const leaseUsable = "frame" in end && options.rollback === "fork";
  return { status: "output_limit", resultJson: null, diagnostics, error: { type: "OutputLimit", message, limit }, leaseUsable };
}

/** The worker sent no `done` frame: the cell was stopped, its process died, or the sandbox was lost. */
async function judgeUnfinished(facts: CellFacts): Promise<CellVerdict> {
  const { end, options, stopped, before, after } = facts;
  const ended = "frame" in end ? (end.frame as EndedFrame) : null;
  const scratchChanged = ended?.scratchChanged ?? [];
  const exitCode = ended?.signal !== undefined ? 128 + ended.signal : ended?.exitCode;
  const leaseUsable = ended !== null && options.rollback === "fork";
  const failed = (status: CellStatus, error: CellError): CellVerdict => ({
    status,
    resultJson: null,
    diagnostics: scratchChanged.length > 0 ? { scratchChanged } : {},
    error,
    leaseUsable,
    exitCode,
  });

  if (stopped === "expired") return failed("sandbox_lost", leaseExpired(options.limits));
  if (stopped !== null) return failed("timeout", timedOut(facts));
  const lost = "lost" in end ? end.lost : "it ended";
  const mayBeDead = !leaseUsable && !("lost" in end && end.brokeProtocol === true);
  const cause = await findLostCause({ ended, lost, lease: options.lease, before, after, mayBeDead });
  switch (cause.kind) {
    case "out_of_memory": {
      const message = toMemoryMessage("The cell was ended because the sandbox ran out of memory", facts);
      return failed("out_of_memory", { type: "OutOfMemory", message, limit: toMemoryLimit(facts) });
    }
    case "crashed": {
      const message = `The process that ran the cell ${cause.how}. Variables are as they were before the cell.`;
      return failed("crashed", { type: "Crashed", message });
    }
    case "lost":
      return failed("sandbox_lost", { type: "SandboxLost", message: cause.detail });
  }
}

function toDiagnostics({ diagnostics, leftBehind, scratchChanged }: DoneFrame, { before, after }: CellFacts): Record<string, unknown> {
  const killedForMemory = after.memoryKills - before.memoryKills;
  return {
    ...readDiagnostics(diagnostics),
    ...(killedForMemory > 0 ? { killedForMemory } : {}),
    ...(leftBehind && (leftBehind.threads > 0 || leftBehind.processes > 0) ? { leftBehind } : {}),
    ...(scratchChanged?.length ? { scratchChanged } : {}),
  };
}

function artifactRejected(why: string): CellError {
  return { type: "ArtifactRefused", message: `An artifact of the cell was rejected: ${why}.` };
}

function timedOut({ options, runMs }: CellFacts): CellError {
  const allowed = options.limits.cellTimeoutMs;
  return {
    type: "Timeout",
    message: `The cell exceeded its time limit of ${allowed / 1000} s and was stopped. Compute less, vectorise loops, or work on an aggregate.`,
    limit: { name: "cellTimeoutMs", allowed, seen: Math.round(runMs) },
  };
}

function leaseExpired({ leaseTimeoutMs: allowed }: SandboxLimits): CellError {
  return {
    type: "LeaseExpired",
    message: `The sandbox reached its maximum lifetime of ${allowed / 1000} s while the cell ran. Run the cell again: it gets a new sandbox.`,
    limit: { name: "leaseTimeoutMs", allowed, seen: allowed },
  };
}

function toMemoryMessage(what: string, { options, after }: CellFacts): string {
  const mb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;
  return `${what}: the limit is ${mb(options.limits.memoryBytes)}, the peak was ${mb(after.peakMemoryBytes)}.`;
}

function toMemoryLimit({ options, after }: CellFacts): CellError["limit"] {
  return { name: "memoryBytes", allowed: options.limits.memoryBytes, seen: after.peakMemoryBytes };
}

/**
 * Finds the sandbox limit behind an exception: a full scratch, too many open files, too many processes or threads. The kernel refuses exactly at the
 * limit, so `seen` equals `allowed`.
 */
function findExceededLimit(error: CellError, limits: SandboxLimits): CellError["limit"] {
  const name = findLimitName(error);
  return name === null ? undefined : { name, allowed: limits[name], seen: limits[name] };
}

function findLimitName({ type, message, traceback = "" }: CellError): "scratchBytes" | "openFiles" | "processes" | null {
  if (type === "OSError" && /^\[Errno (27|28)\] /.test(message)) return "scratchBytes"; // EFBIG, ENOSPC
  if (type === "OSError" && message.startsWith("[Errno 24] ")) return "openFiles"; // EMFILE
  if (type === "RuntimeError" && message === "can't start new thread") return "processes";
  // EAGAIN can also come from a socket or pipe that would block.
  if (type === "BlockingIOError" && message.startsWith("[Errno 11] ") && traceback.includes("fork")) return "processes";
  return null;
}
