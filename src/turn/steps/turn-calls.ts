import { randomUUID } from "node:crypto";
import { createToolError, serializeToolError, type ToolError } from "../../errors/tool-error.ts";
import type { ErrorCode } from "../../errors/error-table.ts";
import type { ForeignToolError } from "../../errors/foreign-tool-error.ts";
import type { EvidenceStore } from "../../evidence/evidence-store.ts";
import type { ApprovalEndEvent, ApprovalRequestEvent, ToolStartEvent, TurnEvent } from "../../protocol/turn-events.ts";
import type { Approval, ToolPolicy } from "../../tools/tool-policy.ts";
import type { ToolCallResult } from "../../tools/tool.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { CallGuard } from "./call-guard.ts";
import type { TurnRequest } from "../turn-request.ts";
import type { Call, CallEnd, CallFailure, Ledger } from "../ledger.ts";

/** The only way to a tool in a turn, for the model and for scripts: every call is recorded, told to listeners, and admitted or refused here. */
export interface TurnCalls {
  begin(call: Call): OpenCall;
  /** The request's policy; a person who is asked is asked about this call. */
  policyFor(callId: string): ToolPolicy;
  /** Ends the calls that are still open: they can be waited for no longer. */
  close(): void;
}

export interface OpenCall {
  readonly callId: string;
  readonly policy: ToolPolicy;
  /** Why the call must not be made; null when it may. `overLimit`: why a limit of the script that makes it refuses it. */
  admit(overLimit?: ToolError | null): ToolError | null;
  /** Once; later ends are ignored. */
  end(end: CallEnd): void;
}

export interface TurnCallsOptions extends Pick<TurnRequest, "policy" | "approve"> {
  readonly ledger: Ledger;
  readonly guard: CallGuard;
  readonly evidence: EvidenceStore;
  readonly emit: (event: TurnEvent) => void;
  readonly signal: AbortSignal;
}

export function createTurnCalls({ ledger, guard, evidence, policy, approve, emit, signal }: TurnCallsOptions): TurnCalls {
  const open = new Map<string, OpenCall["end"]>();

  function begin(call: Call): OpenCall {
    const begun = ledger.begin(call);
    const { callId, step, tool, server, intent, within } = begun;
    const startedAt = performance.now();
    emit({ type: "tool-start", step, callId, tool, server, intent, within, ...toShownArguments(call) });

    function end(given: CallEnd): void {
      if (!open.delete(callId)) return;
      const { durationMs = toMilliseconds(performance.now() - startedAt), status, aliases = [], artifacts = [], failure } = given;
      const replaced = ledger.add(begun, { ...given, durationMs });
      if (replaced === null) return;
      const kept = aliases[0] === undefined ? null : evidence.get(aliases[0]);
      const facts = { alias: kept?.alias, rows: kept?.shape.rows ?? undefined, bytes: kept?.bytes, reason: failure?.reason };
      emit({ type: "tool-end", step, callId, tool, server, status, durationMs, ...facts, within });
      for (const [index, artifact] of artifacts.entries()) emit({ type: "artifact", artifact, replaces: index === 0 ? replaced : [] });
    }

    open.set(callId, end);
    // A question about a script's call names the call of execute, which is the one that a person sees.
    return { callId, policy: policyFor(within ?? callId), admit: (overLimit) => overLimit ?? admit(call), end };
  }

  function admit(call: Call): ToolError | null {
    return call.tool === "final_response" || guard.admit(call) ? null : repeated(call.tool);
  }

  /** Anything but a yes is a no, also a failure to answer. */
  function policyFor(callId: string): ToolPolicy {
    if (approve === undefined) return policy;
    return policy.approvedBy(async ({ name, tool: { server } }, args, askSignal = signal): Promise<Approval> => {
      const approvalId = randomUUID();
      const request: ApprovalRequestEvent = { type: "approval-request", approvalId, callId, tool: name, server, arguments: { ...args } };
      const settle = (answer: ApprovalEndEvent["answer"]): void => emit({ type: "approval-end", approvalId, callId, answer });
      emit(request);
      try {
        const said = await orAbort(approve(request, askSignal), askSignal);
        const approval = typeof said === "boolean" ? { approved: said } : said;
        settle(approval.approved ? "approved" : "refused");
        return approval;
      } catch (error) {
        settle(askSignal.aborted ? "abandoned" : "refused");
        throw error;
      }
    });
  }

  return { begin, policyFor, close: () => open.forEach((end) => end(leftRunning)) };
}

/** How a call ended, with what the model reads of it. */
export interface CallResult extends CallEnd {
  readonly text: string;
  /** Outputs whose previews the text is. */
  readonly previews?: readonly string[];
  /** What is left of the text when it has to make room; its beginning unless given. */
  readonly brief?: string;
}

export function toCallResult({ status, text, error, aliases, artifacts }: ToolCallResult): CallResult {
  return { status, text, aliases, artifacts, failure: error === null ? undefined : toFailure(error) };
}

/** `error`: it was tried, and failed. `refused`: it was not tried. */
export function toFailedCall(status: "error" | "refused", toolError: ToolError | ForeignToolError): CallResult {
  return { status, text: `{"status":"error","error":${serializeToolError(toolError)}}`, failure: toFailure(toolError) };
}

export function toFailure(toolError: ToolError | ForeignToolError): CallFailure {
  const code = toolError["error_code"];
  return { kind: toolError.error_kind, code: typeof code === "string" ? code : toolError.error_kind, reason: toolError.summary };
}

export function toAborted(reason: string): CallEnd {
  return { status: "aborted", failure: { kind: null, code: "ABORTED" satisfies ErrorCode, reason } };
}

/** The end of a call that was not over when it could be waited for no longer. */
export const leftRunning: CallEnd = { ...toAborted("it was still running when the turn ended"), durationMs: 0 };

const SHOWN_ARGUMENTS_BYTES = 16_384;
/** What these are called with is told by other events. */
const toldElsewhere: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit", "final_response"]);

function toShownArguments({ tool, input }: Call): Pick<ToolStartEvent, "arguments" | "argumentsOmittedBytes"> {
  if (toldElsewhere.has(tool) || input === undefined) return {};
  const bytes = Buffer.byteLength(JSON.stringify(input) ?? "");
  return bytes <= SHOWN_ARGUMENTS_BYTES ? { arguments: input } : { argumentsOmittedBytes: bytes };
}

function repeated(tool: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool,
    summary: `${tool} was called three times with the same arguments; the third call was not made.`,
    hints: ["Use what the earlier calls gave: it is kept under its alias."],
  });
}

function toMilliseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
