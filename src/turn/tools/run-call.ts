import { createEnvelope, serializeEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { ForeignEnvelope } from "../../errors/foreign-envelope.ts";
import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { TraceCall } from "../../protocol/turn-result.ts";
import type { CallFailure } from "../ledger.ts";
import type { Observation } from "../observations.ts";
import type { Turn } from "../open-turn.ts";

export interface ToolCall {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly server?: string | undefined;
  readonly intent?: string | undefined;
}

/** What a call came to. Only what is there is said. */
export interface CallOutcome {
  readonly observation: Observation;
  readonly status: TraceCall["status"];
  readonly aliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
  readonly replaces?: readonly string[];
  readonly failure?: CallFailure;
  readonly isEmpty?: boolean;
}

/** Every call of the model goes this way: guarded, tracked, recorded, told to who listens. Gives what the model reads; rejects on abort only. */
export function runCall(turn: Turn, call: ToolCall, work: () => Promise<CallOutcome>): Promise<string> {
  return turn.running.track(follow(turn, call, work));
}

async function follow(turn: Turn, call: ToolCall, work: () => Promise<CallOutcome>): Promise<string> {
  turn.clock.stepsSignal.throwIfAborted(); // nothing is begun for a turn that is over
  const { callId, tool, server, intent } = call;
  const step = turn.ledger.steps;
  const startedAt = performance.now();
  turn.ledger.beginCall({ step, callId, tool, server, intent, input: call.input });
  turn.emit({ type: "tool-start", step, callId, tool, server, intent });
  const end = (outcome: CallOutcome): void => record(turn, call, outcome, { step, durationMs: round(performance.now() - startedAt) });
  try {
    const outcome = tool === "final_response" || turn.guard.admit(call) ? await work() : refused(repeated(tool));
    end(outcome);
    turn.observations.add(callId, outcome.observation);
    return outcome.observation.text;
  } catch (error) {
    if (turn.clock.stepsSignal.aborted) {
      end(failed({ text: "The turn was ended.", kind: null, code: "ABORTED", reason: "the turn was ended" }, "aborted"));
      throw error;
    }
    const outcome = failedBy(
      createEnvelope({ code: "INTERNAL_ERROR", tool, summary: error instanceof Error ? error.message : String(error) }),
    );
    end(outcome);
    turn.observations.add(callId, outcome.observation);
    return outcome.observation.text;
  }
}

function record(turn: Turn, call: ToolCall, outcome: CallOutcome, { step, durationMs }: { step: number; durationMs: number }): void {
  const { callId, tool, server, intent, input } = call;
  const { status, aliases = [], artifacts = [], failure, isEmpty = false } = outcome;
  if (turn.ledger.calls.some((one) => one.callId === callId)) return; // it was given up, and is too late
  turn.ledger.addCall({ step, callId, tool, server, intent, input, status, durationMs, aliases, artifacts, failure, isEmpty });
  const kept = aliases[0] === undefined ? null : turn.conversation.evidence.get(aliases[0]);
  turn.emit({
    type: "tool-end",
    step,
    callId,
    tool,
    server,
    status,
    durationMs,
    alias: kept?.alias,
    rows: kept?.shape.rows ?? undefined,
    bytes: kept?.bytes,
    reason: failure?.reason,
  });
  for (const [index, artifact] of artifacts.entries())
    turn.emit({ type: "artifact", artifact, replaces: index === 0 ? [...(outcome.replaces ?? [])] : [] });
}

/** An answer that is not a preview: what a cell, a script or a search said. */
export function answered(text: string, rest: Partial<CallOutcome> & { brief?: string } = {}): CallOutcome {
  const { brief = clip(text), ...others } = rest;
  return { observation: { text, isError: false, previews: [], brief }, status: "ok", ...others };
}

/** It was tried, and failed. */
export function failedBy(envelope: Envelope | ForeignEnvelope, text: string = toText(envelope)): CallOutcome {
  return failed({ text, ...toFailure(envelope) }, "error");
}

/** It was not tried. */
export function refused(envelope: Envelope | ForeignEnvelope, text: string = toText(envelope)): CallOutcome {
  return failed({ text, ...toFailure(envelope) }, "refused");
}

export function failed({ text, ...failure }: CallFailure & { text: string }, status: "error" | "refused" | "aborted"): CallOutcome {
  return { observation: { text, isError: true, previews: [], brief: clip(text) }, status, failure };
}

export function toFailure(envelope: Envelope | ForeignEnvelope): CallFailure {
  const code = envelope["error_code"];
  return { kind: envelope.error_kind, code: typeof code === "string" ? code : envelope.error_kind, reason: envelope.summary };
}

function toText(envelope: Envelope | ForeignEnvelope): string {
  return `{"status":"error","error":${serializeEnvelope(envelope)}}`;
}

function repeated(tool: string): Envelope {
  return createEnvelope({
    code: "TOOL_NOT_ALLOWED",
    tool,
    summary: `${tool} was called three times with the same arguments; the third call was not made.`,
    hints: ["Use what the earlier calls gave: it is kept under its alias."],
  });
}

const BRIEF_CHARACTERS = 600;

function clip(text: string): string {
  return text.length <= BRIEF_CHARACTERS
    ? text
    : `${text.slice(0, BRIEF_CHARACTERS)}… [${text.length - BRIEF_CHARACTERS} characters were left out to make room]`;
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
