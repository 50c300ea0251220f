import { createEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { Turn } from "../open-turn.ts";
import { findServer } from "../tools/find-tool.ts";
import { failed, refused, type CallOutcome } from "../tools/run-call.ts";
import type { StepEnd } from "./run-step.ts";

type AskedCall = StepEnd["toolCalls"][number];

/** Calls that never reached a tool: no such tool, a tool that was not to be called now, arguments that are no JSON, or a model that was gone before. */
export function recordMissedCalls(turn: Turn, { toolCalls, error }: Pick<StepEnd, "toolCalls" | "error">): void {
  const { ledger, observations, emit } = turn;
  const step = ledger.steps;
  for (const call of toolCalls) {
    if (ledger.begun.has(call.callId)) continue;
    const { callId, tool, input, problem } = call;
    const { status, failure, observation } = problem === null && error !== null ? brokenOff : refused(toEnvelope(turn, call));
    const server = findServer(turn, tool);
    ledger.addCall({ step, callId, tool, server, input, status, durationMs: 0, aliases: [], artifacts: [], failure, isEmpty: false });
    observations.add(callId, observation);
    emit({ type: "tool-start", step, callId, tool, server });
    emit({ type: "tool-end", step, callId, tool, server, status, durationMs: 0, reason: failure!.reason });
  }
}

const brokenOff: CallOutcome = failed(
  { text: "The call was not made.", kind: null, code: "ABORTED", reason: "the model's answer broke off before it was called" },
  "aborted",
);

const ofPython: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit"]);

function toEnvelope(turn: Turn, { tool, problem }: AskedCall): Envelope {
  if (problem?.kind === "malformed")
    return createEnvelope({
      code: "SCHEMA_VALIDATION_FAILED",
      tool,
      summary: "The call was not made: its arguments are not valid JSON.",
      details: [{ path: "", issue: problem.reason, received_type: "string" }],
    });
  const gone = turn.away.find(({ server }) => server === findServer(turn, tool));
  if (gone !== undefined)
    return createEnvelope({
      code: "UPSTREAM_UNREACHABLE",
      tool,
      summary: `The server ${gone.server} of the tool ${tool} cannot be used now: ${gone.reason}`,
    });
  const noPython = ofPython.has(tool) ? turn.gaps.find(({ code }) => code === "sandbox_unavailable") : undefined;
  if (noPython !== undefined) return createEnvelope({ code: "SANDBOX_UNAVAILABLE", tool, summary: noPython.detail });
  const details = problem === null ? [] : [{ path: "", issue: problem.reason, received_type: "string" }];
  return createEnvelope({ code: "TOOL_NOT_FOUND", tool, summary: `${tool} cannot be called in this step.`, details });
}

/** Calls that were not over when they could be waited for no longer. */
export function recordLostCalls({ ledger, emit }: Pick<Turn, "ledger" | "emit">): void {
  for (const call of ledger.begun.values()) {
    const { step, callId, tool, server, within } = call;
    const failure = { kind: null, code: "ABORTED", reason: "it was still running when the turn ended" };
    const end = { status: "aborted", durationMs: 0 } as const;
    if (!ledger.addCall({ ...call, ...end, aliases: [], artifacts: [], failure, isEmpty: false })) continue;
    emit({ type: "tool-end", step, callId, tool, server, ...end, reason: failure.reason, within });
  }
}
