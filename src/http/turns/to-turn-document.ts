import type { StoredTurn } from "../../history/contract.ts";
import type { TurnDocument, TurnSummary } from "../../protocol/http-turns.ts";
import type { TurnEvent } from "../../protocol/turn-events.ts";
import type { TurnResult } from "../../protocol/turn-result.ts";
import type { ServerParts } from "../server-parts.ts";
import { listCells } from "./list-cells.ts";

export function toTurnSummary(turn: StoredTurn): TurnSummary {
  const { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy } = turn;
  return { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy };
}

/** A turn for a program: addresses are whole. */
export function toTurnDocument({ history, turns }: ServerParts, turn: StoredTurn, origin: string): TurnDocument {
  const { tenant, turnId } = turn;
  const live = turns.find(tenant, turnId);
  const events = live?.events ?? history.events.read({ tenant, turnId });
  return {
    schemaVersion: 1,
    ...toTurnSummary(turn),
    result: turn.result === null ? null : withOrigin(turn.result, origin),
    pendingApprovals: (live?.approvals.pending() ?? []).map(({ approvalId, callId, tool, server, arguments: given }) => ({
      approvalId,
      callId,
      tool,
      server,
      arguments: given,
    })),
    lastEventId: events.at(-1)?.seq ?? 0,
    cells: listCells(events, history.cellRuns.list(tenant, turnId)).map(({ document }) => document),
  };
}

export function eventWithOrigin(event: TurnEvent, origin: string): TurnEvent {
  if (event.type === "artifact") return { ...event, artifact: { ...event.artifact, url: whole(event.artifact.url, origin) } };
  if (event.type === "answer-delta") return { ...event, text: textWithOrigin(event.text, origin) };
  return event.type === "turn-end" ? { ...event, result: withOrigin(event.result, origin) } : event;
}

function withOrigin(result: TurnResult, origin: string): TurnResult {
  return {
    ...result,
    answer: textWithOrigin(result.answer, origin),
    artifacts: result.artifacts.map((artifact) => ({ ...artifact, url: whole(artifact.url, origin) })),
    dataset: result.dataset === null ? null : { ...result.dataset, publicDataUrl: whole(result.dataset.publicDataUrl, origin) },
  };
}

function whole(url: string, origin: string): string {
  return url.startsWith("/") ? `${origin}${url}` : url;
}

function textWithOrigin(text: string, origin: string): string {
  return text.replaceAll(/\]\((\/(?:artifacts|data)\/)/g, (_found, path: string) => `](${origin}${path}`);
}
