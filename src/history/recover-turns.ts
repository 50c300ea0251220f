import type { DatabaseSync } from "node:sqlite";
import type { ArtifactReference } from "../protocol/artifact-reference.ts";
import type { ToolEndEvent, TurnEvent } from "../protocol/turn-events.ts";
import type { Gap, RecordedResult, TraceStep } from "../protocol/turn-result.ts";
import type { StoredEvent } from "./history.ts";
import type { Quarantine } from "./quarantine.ts";
import { writeResult } from "./stored-forms.ts";
import type { EventRows, TurnRows } from "./turn-rows.ts";

interface Recovery {
  readonly turns: TurnRows;
  readonly events: EventRows;
  readonly quarantine: Pick<Quarantine, "gapOf">;
  readonly at: string;
}

/** Ends the turns of a server that died: each gets a result built from its stored events, with a gap for the rest. Returns their ids. */
export function recoverTurns(database: DatabaseSync, { turns, events, quarantine, at }: Recovery): string[] {
  const running = database.prepare("SELECT tenant, id, conversation_id FROM turns WHERE status = 'running'").all();
  for (const row of running) {
    const place = { tenant: String(row["tenant"]), turnId: String(row["id"]) };
    const stored = events.read(place);
    const abandoned = toAbandonedResult(stored, {
      turnId: place.turnId,
      conversationId: String(row["conversation_id"]),
      code: "server_stopped",
      detail: serverStopped,
    });
    const gap = quarantine.gapOf(place.tenant, place.turnId);
    const result = JSON.parse(writeResult({ ...abandoned, gaps: [...abandoned.gaps, ...(gap === null ? [] : [gap])] })) as RecordedResult;
    const addedAnswer = result.answer.slice(answerOf(stored).length);
    let { seq } = stored.at(-1) ?? { seq: 0 };
    const append = (event: TurnEvent): void => events.append(place, { seq: (seq += 1), at, event });
    if (addedAnswer !== "") append({ type: "answer-delta", text: addedAnswer });
    append({ type: "turn-end", result });
    turns.end({ ...place, result, at });
  }
  return running.map(({ id }) => String(id));
}

const serverStopped = "The server stopped during this turn, so the answer is incomplete. Ask again.";

interface AbandonedTurn {
  readonly turnId: string;
  readonly conversationId: string;
  /** Code of the gap. */
  readonly code: string;
  /** What happened, as a sentence. It ends the answer and explains the gap. */
  readonly detail: string;
}

/** A result for a turn that ended without one, built from the events that it emitted. */
export function toAbandonedResult(stored: readonly StoredEvent[], { code, detail, ...ids }: AbandonedTurn): RecordedResult {
  const events = stored.map(({ event }) => event);
  const ends = events.filter((event): event is ToolEndEvent => event.type === "tool-end" && event.tool !== "final_response");
  const failed = ends.filter(({ status }) => status !== "ok");
  const answer = answerOf(stored);
  const gap: Gap = { code, severity: "major", detail };
  return {
    schemaVersion: 1,
    ...ids,
    answer: `${answer}${answer.trim() === "" ? "" : "\n\n"}${detail}`,
    artifacts: currentArtifacts(events),
    gaps: [gap],
    outcome: { stopReason: "aborted" },
    confidence: { level: "low", reason: detail },
    grounding: {
      toolCallAttemptCount: ends.length,
      toolCallSuccessCount: ends.length - failed.length,
      toolCallFailureCount: failed.length,
      failures: failed.map(({ tool, reason }) => ({ tool, reason: reason ?? "no reason given" })),
    },
    dataset: null,
    usage: {
      steps: events.filter(({ type }) => type === "step-start").length,
      inputTokens: 0,
      outputTokens: 0,
      wallMs: elapsedMs(stored),
      sandboxMs: 0,
    },
    trace: toTrace(ends),
  };
}

function answerOf(stored: readonly StoredEvent[]): string {
  return stored.map(({ event }) => (event.type === "answer-delta" ? event.text : "")).join("");
}

/** The artifacts that no edit replaced. */
function currentArtifacts(events: readonly TurnEvent[]): ArtifactReference[] {
  const kept = new Map<string, ArtifactReference>();
  for (const event of events) {
    if (event.type !== "artifact") continue;
    for (const hash of event.replaces) kept.delete(hash);
    kept.set(event.artifact.contentHash, event.artifact);
  }
  return [...kept.values()];
}

function toTrace(ends: readonly ToolEndEvent[]): TraceStep[] {
  const steps = Map.groupBy(ends, ({ step }) => step);
  return [...steps].map(([step, calls]) => ({
    step,
    calls: calls.map(({ tool, alias, durationMs, status }) => ({ tool, alias, durationMs, status, artifacts: [] })),
  }));
}

function elapsedMs(stored: readonly StoredEvent[]): number {
  const [first, last] = [stored[0], stored.at(-1)];
  return first === undefined || last === undefined ? 0 : Math.max(0, Date.parse(last.at) - Date.parse(first.at) || 0);
}
