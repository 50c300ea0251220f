import { isJson } from "../evidence/reading/create-output-reader.ts";
import type { CellArtifact, CellError, CellStatus } from "../protocol/outcome.ts";
import type { DoneFrame, EndedFrame } from "../protocol/worker-frames.ts";
import type { SandboxLimits, Usage } from "../sandbox/contract.ts";
import { findLostCause, type WorkerEnd } from "../sandbox/run-in-worker.ts";
import type { RanCell, RunCellOptions, StopReason } from "./run-cell.ts";

/** How the conversation about a cell came to its end. */
export type CellEnd = WorkerEnd<DoneFrame | EndedFrame>;

export interface JudgedCell {
  end: CellEnd;
  options: RunCellOptions;
  stopped: StopReason | null;
  before: Usage;
  after: Usage;
  runMs: number;
  artifacts: CellArtifact[];
  /** Why an artifact was not taken, if one was not. */
  refused: string | undefined;
}

export type CellVerdict = Pick<RanCell, "status" | "resultJson" | "diagnostics" | "error" | "leaseUsable" | "exitCode">;

/** The cause, from what the host itself saw; the worker is believed only about the user's own exception. */
export async function judgeCell(judged: JudgedCell): Promise<CellVerdict> {
  const { end, options, stopped, after, before } = judged;
  if ("frame" in end && end.frame.type === "done") return await judgeDone(end.frame, end.body, judged);
  const scratchChanged = "frame" in end ? (end.frame.scratchChanged ?? []) : [];
  const diagnostics = scratchChanged.length > 0 ? { scratchChanged } : {};
  const leaseUsable = "frame" in end && options.rollback === "fork";
  const ended = "frame" in end ? (end.frame as EndedFrame) : null;
  const exitCode = ended?.signal !== undefined ? 128 + ended.signal : ended?.exitCode;
  const failed = (status: CellStatus, error: CellError): CellVerdict => ({
    status,
    resultJson: null,
    diagnostics,
    error,
    leaseUsable,
    ...(exitCode === undefined ? {} : { exitCode }),
  });

  if (stopped === "expired") return failed("sandbox_lost", expiredError(judged));
  if (stopped !== null) return failed("timeout", timeoutError(judged));
  if ("refused" in end) {
    return failed("contract_violation", { type: "ArtifactRefused", message: `What the cell gave out was refused: ${end.refused}.` });
  }
  const lost = "lost" in end ? end.lost : "it ended";
  const mayBeDead = !leaseUsable && !("lost" in end && end.byHost === true);
  const cause = await findLostCause({ ended, lost, lease: options.lease, before, after, mayBeDead });
  switch (cause.kind) {
    case "out_of_memory":
      return failed("out_of_memory", memoryError(judged));
    case "crashed": {
      const message = `The process that ran the cell ${cause.how}. Its variables are as they were before the cell.`;
      return failed("crashed", { type: "Crashed", message });
    }
    case "lost":
      return failed("sandbox_lost", { type: "SandboxLost", message: cause.detail });
  }
}

async function judgeDone(frame: DoneFrame, body: Uint8Array, judged: JudgedCell): Promise<CellVerdict> {
  const { options } = judged;
  const left = frame.leftBehind;
  const killedForMemory = judged.after.memoryKills - judged.before.memoryKills;
  const diagnostics = {
    ...frame.diagnostics,
    ...(killedForMemory > 0 ? { killedForMemory } : {}),
    ...(left && (left.threads > 0 || left.processes > 0) ? { leftBehind: left } : {}),
    ...(frame.scratchChanged?.length ? { scratchChanged: frame.scratchChanged } : {}),
  };
  if (frame.status !== "ok") {
    const error = frame.error ?? { type: "Error", message: "the cell failed and did not say how" };
    const leaseUsable = options.rollback === "fork";
    if (frame.status !== "memory_error") {
      const limit = error.limit ?? (frame.status === "python_error" ? limitBehind(error, options.limits) : undefined);
      return { status: frame.status, resultJson: null, diagnostics, error: { ...error, ...(limit && { limit }) }, leaseUsable };
    }
    const limit = { name: "memoryBytes", allowed: options.limits.memoryBytes, seen: judged.after.peakMemoryBytes };
    return {
      status: "out_of_memory",
      resultJson: null,
      diagnostics,
      error: { ...error, message: memoryMessage(error.message, judged), limit },
      leaseUsable,
    };
  }
  const broken = (status: CellStatus, error: CellError): CellVerdict => ({
    status,
    resultJson: null,
    diagnostics,
    error,
    leaseUsable: false,
  });
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
  if (resultJson !== null && !(await isJson(resultJson))) {
    return broken("contract_violation", { type: "ResultNotJson", message: "The result that the sandbox sent is not JSON." });
  }
  return { status: "ok", resultJson, diagnostics, leaseUsable: true };
}

function timeoutError({ options, runMs }: JudgedCell): CellError {
  const allowed = options.limits.cellTimeoutMs;
  return {
    type: "Timeout",
    message: `The cell ran longer than its limit of ${allowed / 1000} s and was ended. Compute less, vectorise loops, or work on an aggregate.`,
    limit: { name: "cellTimeoutMs", allowed, seen: Math.round(runMs) },
  };
}

function expiredError({ options }: JudgedCell): CellError {
  const allowed = options.limits.leaseTimeoutMs;
  return {
    type: "LeaseExpired",
    message: `The sandbox lived for its limit of ${allowed / 1000} s and was ended while the cell ran. Run the cell again: it gets a new sandbox.`,
    limit: { name: "leaseTimeoutMs", allowed, seen: allowed },
  };
}

function memoryError(judged: JudgedCell): CellError {
  const limit = { name: "memoryBytes", allowed: judged.options.limits.memoryBytes, seen: judged.after.peakMemoryBytes };
  return { type: "OutOfMemory", message: memoryMessage("The cell was ended because the sandbox ran out of memory", judged), limit };
}

function memoryMessage(what: string, { options, after }: JudgedCell): string {
  const mb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;
  return `${what || "MemoryError"}: the limit is ${mb(options.limits.memoryBytes)}, the peak was ${mb(after.peakMemoryBytes)}.`;
}

/**
 * The limit of the sandbox that an exception of the cell is about: a full scratch, no descriptor left, no process or thread more. The kernel says no at the
 * bound itself, so what was seen is what is allowed.
 */
function limitBehind({ type, message, traceback = "" }: CellError, limits: SandboxLimits): CellError["limit"] {
  const name = nameOf(type, message, traceback);
  return name === null ? undefined : { name, allowed: limits[name], seen: limits[name] };
}

function nameOf(type: string, message: string, traceback: string): "scratchBytes" | "openFiles" | "processes" | null {
  if (type === "OSError" && /^\[Errno (27|28)\] /.test(message)) return "scratchBytes"; // EFBIG, ENOSPC
  if (type === "OSError" && message.startsWith("[Errno 24] ")) return "openFiles"; // EMFILE
  if (type === "RuntimeError" && message === "can't start new thread") return "processes";
  // EAGAIN is also what a socket or pipe says that would block.
  if (type === "BlockingIOError" && message.startsWith("[Errno 11] ") && traceback.includes("fork")) return "processes";
  return null;
}
