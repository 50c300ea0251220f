import { createEnvelope, serializeEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { ForeignEnvelope } from "../../errors/foreign-envelope.ts";
import { clip } from "../clip.ts";
import type { BegunCall, Call, CallFailure, CallRecord } from "../ledger.ts";
import type { ToolStartEvent } from "../../protocol/turn-events.ts";
import type { Observation } from "../observations.ts";
import type { Turn } from "../open-turn.ts";

/** What a call came to. Only what is there is said. */
export interface CallEnd extends Pick<CallRecord, "status">, Partial<Pick<CallRecord, "aliases" | "artifacts" | "failure" | "isEmpty">> {
  /** Content hashes of what does not count any more. */
  readonly replaces?: readonly string[];
}

/** The same, with what the model reads of it. */
export interface CallOutcome extends CallEnd {
  readonly observation: Observation;
}

/** Every call of the model goes this way: guarded, tracked, recorded, told to who listens. Gives what the model reads; rejects on abort only. */
export function runCall(turn: Turn, call: Call, work: () => Promise<CallOutcome>): Promise<string> {
  return turn.running.track(follow(turn, call, work));
}

async function follow(turn: Turn, call: Call, work: () => Promise<CallOutcome>): Promise<string> {
  turn.clock.stepsSignal.throwIfAborted(); // nothing is begun for a turn that is over
  const { callId, tool } = call;
  const { end } = openCall(turn, call);
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

/** A call begins: it is in the ledger, and told to who listens. `end` does the same for its end, once. */
export function openCall(turn: Turn, call: Call): { end(end: CallEnd): void } {
  const begun = { ...call, step: turn.ledger.steps };
  const { step, callId, tool, server, intent, within } = begun;
  const startedAt = performance.now();
  turn.ledger.beginCall(begun);
  turn.emit({ type: "tool-start", step, callId, tool, server, intent, within, ...toShownArguments(call) });
  return { end: (end) => record(turn, { ...begun, durationMs: round(performance.now() - startedAt) }, end) };
}

const SHOWN_ARGUMENTS_BYTES = 16_384;
/** What these are called with is told by other events. */
const toldElsewhere: ReadonlySet<string> = new Set(["code_interpreter", "python_code_edit", "final_response"]);

function toShownArguments({ tool, input }: Call): Pick<ToolStartEvent, "arguments" | "argumentsOmittedBytes"> {
  if (toldElsewhere.has(tool) || input === undefined) return {};
  const bytes = Buffer.byteLength(JSON.stringify(input) ?? "");
  return bytes <= SHOWN_ARGUMENTS_BYTES ? { arguments: input } : { argumentsOmittedBytes: bytes };
}

function record(turn: Turn, call: BegunCall & { durationMs: number }, end: CallEnd): void {
  const { step, callId, tool, server, within, durationMs } = call;
  const { status, aliases = [], artifacts = [], failure, isEmpty = false } = end;
  if (!turn.ledger.addCall({ ...call, status, aliases, artifacts, failure, isEmpty })) return;
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
    within,
  });
  for (const [index, artifact] of artifacts.entries())
    turn.emit({ type: "artifact", artifact, replaces: index === 0 ? [...(end.replaces ?? [])] : [] });
}

/** An answer that is not a preview: what a cell, a script or a search said. */
export function answered(text: string, rest: Partial<CallOutcome> & { brief?: string } = {}): CallOutcome {
  const { brief = clip(text, BRIEF_CHARACTERS), ...others } = rest;
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
  return { observation: { text, isError: true, previews: [], brief: clip(text, BRIEF_CHARACTERS) }, status, failure };
}

export function toFailure(envelope: Envelope | ForeignEnvelope): CallFailure {
  const code = envelope["error_code"];
  return { kind: envelope.error_kind, code: typeof code === "string" ? code : envelope.error_kind, reason: envelope.summary };
}

function toText(envelope: Envelope | ForeignEnvelope): string {
  return `{"status":"error","error":${serializeEnvelope(envelope)}}`;
}

export function repeated(tool: string): Envelope {
  return createEnvelope({
    code: "TOOL_NOT_ALLOWED",
    tool,
    summary: `${tool} was called three times with the same arguments; the third call was not made.`,
    hints: ["Use what the earlier calls gave: it is kept under its alias."],
  });
}

const BRIEF_CHARACTERS = 600;

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
