import { randomUUID } from "node:crypto";
import { orAbort } from "../../concurrency/or-abort.ts";
import { errorTable, type ErrorCode } from "../../errors/error-table.ts";
import type { ForeignToolError } from "../../errors/foreign-tool-error.ts";
import { createToolError, serializeToolError, type ToolError } from "../../errors/tool-error.ts";
import { toArtifactReference } from "../../protocol/artifact-reference.ts";
import type { ApprovalEndEvent, ApprovalRequestEvent, ToolStartEvent } from "../../protocol/turn-events.ts";
import type { Approval, ToolPolicy } from "../../tools/tool-policy.ts";
import type { ToolCallResult } from "../../tools/tool.ts";
import type { Call, CallEnd, CallFailure } from "../ledger.ts";
import type { TurnParts } from "../turn-request.ts";
import { describeRepeat, type CallGuard } from "./call-guard.ts";

/** The only way to a tool in a turn, for the model and for scripts. Admits or refuses every call, records it and emits its events. */
export interface TurnCalls {
  request(call: Call): OpenCall;
  /** The policy of the turn. Approval requests name the given call. */
  policyFor(callId: string): ToolPolicy;
  /** Ends all open calls as aborted. */
  close(): void;
}

/** A requested call that has not ended. */
export interface OpenCall {
  readonly callId: string;
  readonly policy: ToolPolicy;
  /** Returns null to admit the call, or the error of its refusal. `overLimit` is the refusal by a limit of the script. */
  admit(overLimit?: ToolError | null): ToolError | null;
  /** Later calls are ignored. */
  end(end: CallEnd): void;
}

export interface TurnCallsOptions extends Pick<TurnParts, "request" | "conversation" | "ledger" | "emit"> {
  readonly guard: CallGuard;
  readonly signal: AbortSignal;
}

export function createTurnCalls({ request: { policy, approve }, conversation, ledger, guard, emit, signal }: TurnCallsOptions): TurnCalls {
  const open = new Map<string, OpenCall["end"]>();

  function request(call: Call): OpenCall {
    const requested = ledger.request(call);
    const { callId, step, tool, server, intent, within } = requested;
    const startedAt = performance.now();
    emit({ type: "tool-start", step, callId, tool, server, intent, within, ...toShownArguments(call) });

    function end(callEnd: CallEnd): void {
      if (!open.delete(callId)) return;
      const { durationMs = roundToMicroseconds(performance.now() - startedAt), status, aliases = [], artifacts = [], failure } = callEnd;
      const replaced = ledger.end(requested, { ...callEnd, durationMs });
      const item = aliases[0] === undefined ? null : conversation.evidence.get(aliases[0]);
      const facts = { alias: item?.alias, rows: item?.shape.rows ?? undefined, bytes: item?.bytes, reason: failure?.reason };
      emit({ type: "tool-end", step, callId, tool, server, status, durationMs, ...facts, within });
      for (const [index, artifact] of artifacts.entries())
        emit({ type: "artifact", artifact: toArtifactReference(artifact), replaces: index === 0 ? replaced : [] });
    }

    open.set(callId, end);
    // For a script's call the approval request names the execute call, because that is the one the user sees.
    return { callId, policy: policyFor(within ?? callId), admit: (overLimit) => overLimit ?? admit(call), end };
  }

  function admit(call: Call): ToolError | null {
    const { tool } = call;
    if (tool === "final_response" || guard.admit(call)) return null;
    return createToolError({ code: "CALL_REPEATED", tool, summary: describeRepeat(tool), hints: [errorTable.CALL_REPEATED.hint] });
  }

  /** Only an explicit yes approves a call; a failed `approve` refuses it. */
  function policyFor(callId: string): ToolPolicy {
    if (approve === undefined) return policy;
    return policy.approvedBy(async ({ name, tool: { server } }, args, approvalSignal = signal): Promise<Approval> => {
      const approvalId = randomUUID();
      const approvalRequest: ApprovalRequestEvent = {
        ...{ type: "approval-request", approvalId, callId, tool: name, server },
        arguments: { ...args },
      };
      const settle = (answer: ApprovalEndEvent["answer"]): void => emit({ type: "approval-end", approvalId, callId, answer });
      emit(approvalRequest);
      try {
        const answer = await orAbort(approve(approvalRequest, approvalSignal), approvalSignal);
        const approval = typeof answer === "boolean" ? { approved: answer } : answer;
        settle(approval.approved ? "approved" : "refused");
        return approval;
      } catch (error) {
        settle(approvalSignal.aborted ? "abandoned" : "refused");
        throw error;
      }
    });
  }

  return { request, policyFor, close: () => open.forEach((end) => end(stillRunning)) };
}

/** How a call ended, and the text that the model reads. */
export interface CallResult extends CallEnd {
  readonly text: string;
  /** Aliases, when the text consists of their previews. */
  readonly previews?: readonly string[];
  /** Replaces the text when the context is full. Default: the beginning of the text. */
  readonly brief?: string;
}

export function fromToolCallResult({ status, text, error, aliases, artifacts }: ToolCallResult): CallResult {
  return { status, text, aliases, artifacts, failure: error === null ? undefined : toFailure(error) };
}

/** `error`: the call ran and failed. `refused`: it did not run. */
export function toFailedCall(status: "error" | "refused", toolError: ToolError | ForeignToolError): CallResult {
  return { status, text: `{"status":"error","error":${serializeToolError(toolError)}}`, failure: toFailure(toolError) };
}

export function toFailure(toolError: ToolError | ForeignToolError): CallFailure {
  const code = toolError["error_code"];
  return { kind: toolError.error_kind, code: typeof code === "string" ? code : "TOOL_EXECUTION_ERROR", reason: toolError.summary };
}

export function toAborted(reason: string): CallEnd {
  return { status: "aborted", failure: { kind: null, code: "ABORTED" satisfies ErrorCode, reason } };
}

/** The end of a call that kept running after the turn had stopped waiting for it. */
export const stillRunning: CallEnd = { ...toAborted("it was still running when the turn ended"), durationMs: 0 };

const SHOWN_ARGUMENTS_BYTES = 16_384;
/** Other events carry the arguments of these tools. */
const toolsWithoutShownArguments: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit", "final_response"]);

function toShownArguments({ tool, input }: Call): Pick<ToolStartEvent, "arguments" | "argumentsOmittedBytes"> {
  if (toolsWithoutShownArguments.has(tool) || input === undefined) return {};
  const bytes = Buffer.byteLength(JSON.stringify(input) ?? "");
  return bytes <= SHOWN_ARGUMENTS_BYTES ? { arguments: input } : { argumentsOmittedBytes: bytes };
}

function roundToMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
