import type { DatabaseSync } from "node:sqlite";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { ToolEndEvent, TurnEvent } from "../protocol/turn-events.ts";
import type { Gap, TraceStep, TurnResult } from "../protocol/turn-result.ts";
import type { StoredEvent } from "./history.ts";
import type { EventRows, TurnRows } from "./create-rows.ts";

interface RecoverOptions {
  readonly database: DatabaseSync;
  readonly turns: TurnRows;
  readonly events: EventRows;
  readonly at: string;
}

/** Turns of a server that died. They get the end that they can have: what was seen of them, and that the rest is missing. */
export function recoverTurns({ database, turns, events, at }: RecoverOptions): string[] {
  const running = database.prepare("SELECT tenant, id, conversation_id FROM turns WHERE status = 'running'").all();
  for (const row of running) {
    const place = { tenant: String(row["tenant"]), turnId: String(row["id"]) };
    const seen = events.read(place);
    const result = toAbandonedResult(seen, {
      turnId: place.turnId,
      conversationId: String(row["conversation_id"]),
      code: "server_stopped",
      detail: stopped,
    });
    const missing = result.answer.slice(answerOf(seen).length);
    let { seq } = seen.at(-1) ?? { seq: 0 };
    const append = (event: TurnEvent): void => events.append(place, { seq: (seq += 1), at, event });
    if (missing !== "") append({ type: "answer-delta", text: missing });
    append({ type: "turn-end", result });
    turns.end({ ...place, result, at });
  }
  return running.map(({ id }) => String(id));
}

const stopped = "The server stopped while this turn ran, so it has no answer of its own. Ask again.";

interface Abandoned {
  readonly turnId: string;
  readonly conversationId: string;
  /** Of the gap. */
  readonly code: string;
  /** What happened to it, as a sentence of the answer. */
  readonly detail: string;
}

/** The end of a turn that did not come to one by itself, from what was seen of it. */
export function toAbandonedResult(seen: readonly StoredEvent[], { code, detail, ...ids }: Abandoned): TurnResult {
  const events = seen.map(({ event }) => event);
  const ends = events.filter((event): event is ToolEndEvent => event.type === "tool-end" && event.tool !== "final_response");
  const failed = ends.filter(({ status }) => status !== "ok");
  const said = answerOf(seen);
  const gap: Gap = { code, severity: "major", detail };
  return {
    schemaVersion: 1,
    ...ids,
    answer: `${said}${said.trim() === "" ? "" : "\n\n"}${detail}`,
    artifacts: artifactsOf(events),
    gaps: [gap],
    outcome: { stopReason: "aborted" },
    confidence: { level: "low", reason: detail },
    grounding: {
      toolCallAttemptCount: ends.length,
      toolCallSuccessCount: ends.length - failed.length,
      toolCallFailureCount: failed.length,
      failures: failed.map(({ tool, reason }) => ({ tool, reason: reason ?? "it did not say why" })),
    },
    dataset: null,
    usage: {
      steps: events.filter(({ type }) => type === "step-start").length,
      inputTokens: 0,
      outputTokens: 0,
      wallMs: elapsed(seen),
      sandboxMs: 0,
    },
    trace: traceOf(ends),
  };
}

function answerOf(seen: readonly StoredEvent[]): string {
  return seen.map(({ event }) => (event.type === "answer-delta" ? event.text : "")).join("");
}

/** Those that were not replaced by an edit. */
function artifactsOf(events: readonly TurnEvent[]): ArtifactEnvelope[] {
  const kept = new Map<string, ArtifactEnvelope>();
  for (const event of events) {
    if (event.type !== "artifact") continue;
    for (const hash of event.replaces) kept.delete(hash);
    kept.set(event.artifact.contentHash, event.artifact);
  }
  return [...kept.values()];
}

function traceOf(ends: readonly ToolEndEvent[]): TraceStep[] {
  const steps = Map.groupBy(ends, ({ step }) => step);
  return [...steps].map(([step, calls]) => ({
    step,
    calls: calls.map(({ tool, alias, durationMs, status }) => ({
      tool,
      ...(alias === undefined ? {} : { alias }),
      durationMs,
      status,
      artifacts: [],
    })),
  }));
}

function elapsed(seen: readonly StoredEvent[]): number {
  const [first, last] = [seen[0], seen.at(-1)];
  return first === undefined || last === undefined ? 0 : Math.max(0, Date.parse(last.at) - Date.parse(first.at));
}
