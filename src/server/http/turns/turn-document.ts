import type { StoredEvent, StoredTurn } from "../../../history/history.ts";
import type { ArtifactReference } from "../../../protocol/artifact-reference.ts";
import type { CellDocument, CellRun } from "../../../protocol/http-cells.ts";
import type { TurnDocument, TurnSummary } from "../../../protocol/http-turns.ts";
import type { CellStartEvent, TurnEvent } from "../../../protocol/turn-events.ts";
import type { RecordedResult } from "../../../protocol/turn-result.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";

export function toTurnSummary(turn: StoredTurn): TurnSummary {
  const { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy } = turn;
  return { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy };
}

/** A turn as the API returns it, with absolute URLs. */
export function toTurnDocument({ history, turns }: Pick<ServerParts, "history" | "turns">, turn: StoredTurn, origin: string): TurnDocument {
  const { tenant, turnId } = turn;
  const live = turns.find(tenant, turnId);
  const events = live?.events ?? history.events.read({ tenant, turnId });
  return {
    schemaVersion: 1,
    ...toTurnSummary(turn),
    result: turn.result === null ? null : resultWithOrigin(turn.result, origin),
    pendingApprovals: (live?.approvals.pending() ?? []).map((request) => {
      const { type: _, ...approval } = request;
      return approval;
    }),
    lastEventId: events.at(-1)?.seq ?? 0,
    cells: listCells(events, history.cellRuns.list(tenant, turnId)).map(({ document }) => document),
  };
}

/** The event with absolute URLs to this server's files. */
export function eventWithOrigin(event: TurnEvent, origin: string): TurnEvent {
  if (event.type === "artifact") return { ...event, artifact: referenceWithOrigin(event.artifact, origin) };
  if (event.type === "answer-delta") return { ...event, text: textWithOrigin(event.text, origin) };
  return event.type === "turn-end" ? { ...event, result: resultWithOrigin(event.result, origin) } : event;
}

function resultWithOrigin(result: RecordedResult, origin: string): RecordedResult {
  return {
    ...result,
    answer: textWithOrigin(result.answer, origin),
    artifacts: result.artifacts.map((artifact) => referenceWithOrigin(artifact, origin)),
    dataset: result.dataset === null ? null : { ...result.dataset, publicDataUrl: toAbsolute(result.dataset.publicDataUrl, origin) },
  };
}

function referenceWithOrigin(artifact: ArtifactReference, origin: string): ArtifactReference {
  const { figureData } = artifact;
  return {
    ...artifact,
    url: toAbsolute(artifact.url, origin),
    ...(figureData && { figureData: { ...figureData, url: toAbsolute(figureData.url, origin) } }),
  };
}

function toAbsolute(url: string, origin: string): string {
  return url.startsWith("/") ? `${origin}${url}` : url;
}

function textWithOrigin(text: string, origin: string): string {
  return text.replaceAll(/\]\((\/(?:artifacts|data)\/)/g, (_match, path: string) => `](${origin}${path}`);
}

/** A stored turn. One that has ended but could not be stored yet is returned with its result. Throws TURN_NOT_FOUND. */
export function findTurn({ history, turns }: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const live = turns.find(tenant, turnId);
  const stored = history.turns.get(tenant, turnId);
  if (stored === null) throw new HttpFailure({ code: "TURN_NOT_FOUND", message: `Turn ${turnId} does not exist.` });
  if (live === null || live.result === null) return stored;
  const { result, events } = live;
  return { ...stored, status: "ended", result, stopReason: result.outcome.stopReason, endedAt: events.at(-1)!.at };
}

/** Throws TURN_NOT_FOUND, or TURN_RUNNING for a turn that has not ended. */
export function findEndedTurn(parts: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const turn = findTurn(parts, tenant, turnId);
  if (turn.status === "ended") return turn;
  throw new HttpFailure({ code: "TURN_RUNNING", message: "The turn is still running.", hint: "Wait for it to end, or stop it." });
}

/** A cell of a turn, and the earlier cells that recreate the state in which it began. */
export interface TurnCell {
  readonly start: CellStartEvent;
  readonly document: CellDocument;
  readonly before: readonly CellStartEvent[];
}

/** The cells of a turn in the order in which they began. Only a cell that succeeded and was not replaced by an edit adds to the state of later ones. */
export function listCells(events: readonly StoredEvent[], reruns: readonly CellRun[] = []): TurnCell[] {
  const cells: TurnCell[] = [];
  const committed: CellStartEvent[] = [];
  let isLastCommitted = false;
  let latest: CellDocument | null = null;
  for (const { event } of events) {
    if (event.type === "cell-start") {
      if (event.tool === "python_code_edit" && isLastCommitted) committed.pop();
      isLastCommitted = false;
      const number = cells.length + 1;
      cells.push({ start: event, document: toCellDocument(event, number, reruns), before: [...committed] });
    } else if (event.type === "tool-end") {
      const cell = cells.findLast(({ start }) => start.callId === event.callId);
      latest = cell?.document ?? null;
      if (cell === undefined) continue;
      Object.assign(cell.document, { status: event.status, resultAlias: event.alias ?? null });
      if (event.status === "ok") {
        committed.push(cell.start);
        isLastCommitted = true;
      }
    } else if (event.type === "artifact") latest?.artifacts.push(event.artifact.contentHash);
  }
  return cells;
}

function toCellDocument(
  { callId, step, tool, code, postProcessingContract }: CellStartEvent,
  cell: number,
  reruns: readonly CellRun[],
): CellDocument {
  const { inputAliases, expectedArtifacts, reason } = postProcessingContract;
  return {
    cell,
    callId,
    step,
    tool,
    code,
    inputAliases,
    expectedArtifacts,
    reason,
    status: "running",
    resultAlias: null,
    artifacts: [],
    runs: reruns.filter((run) => run.cell === cell),
  };
}
