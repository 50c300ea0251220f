import type { StoredEvent, StoredTurn } from "../../../history/history.ts";
import type { CellDocument, CellRun } from "../../../protocol/http-cells.ts";
import type { TurnDocument, TurnSummary } from "../../../protocol/http-turns.ts";
import type { CellStartEvent, TurnEvent } from "../../../protocol/turn-events.ts";
import type { TurnResult } from "../../../protocol/turn-result.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";

export function toTurnSummary(turn: StoredTurn): TurnSummary {
  const { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy } = turn;
  return { turnId, conversationId, question, status, createdAt, endedAt, stopReason, supersededBy };
}

/** A turn for a program: addresses are whole. */
export function toTurnDocument({ history, turns }: Pick<ServerParts, "history" | "turns">, turn: StoredTurn, origin: string): TurnDocument {
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

/** A turn as the history has it, with its end also when that could not be written yet. */
export function findTurn({ history, turns }: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const live = turns.find(tenant, turnId);
  const stored = history.turns.get(tenant, turnId);
  if (stored === null) throw new HttpFailure({ code: "TURN_NOT_FOUND", message: `There is no turn ${turnId}.` });
  if (live === null || live.result === null) return stored;
  const { result, events } = live;
  return { ...stored, status: "ended", result, stopReason: result.outcome.stopReason, endedAt: events.at(-1)!.at };
}

export function findEndedTurn(parts: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const turn = findTurn(parts, tenant, turnId);
  if (turn.status === "ended") return turn;
  throw new HttpFailure({ code: "TURN_RUNNING", message: "The turn still runs.", hint: "Wait for its end, or stop it." });
}

/** A cell of a turn as it was run, and the cells that must be run before it to be where it began. */
export interface PlayedCell {
  readonly start: CellStartEvent;
  readonly document: CellDocument;
  readonly before: readonly CellStartEvent[];
}

/** The cells of a turn, in the order in which they began. Variables of a cell live on when it succeeded, unless an edit took its place. */
export function listCells(events: readonly StoredEvent[], runs: readonly CellRun[] = []): PlayedCell[] {
  const cells: PlayedCell[] = [];
  const counted: CellStartEvent[] = [];
  let isLastCounted = false;
  let latest: CellDocument | null = null;
  for (const { event } of events) {
    if (event.type === "cell-start") {
      if (event.tool === "python_code_edit" && isLastCounted) counted.pop();
      isLastCounted = false;
      const number = cells.length + 1;
      cells.push({ start: event, document: toDocument(event, number, runs), before: [...counted] });
    } else if (event.type === "tool-end") {
      const cell = cells.findLast(({ start }) => start.callId === event.callId);
      latest = cell?.document ?? null;
      if (cell === undefined) continue;
      Object.assign(cell.document, { status: event.status, resultAlias: event.alias ?? null });
      if (event.status === "ok") {
        counted.push(cell.start);
        isLastCounted = true;
      }
    } else if (event.type === "artifact") latest?.artifacts.push(event.artifact.contentHash);
  }
  return cells;
}

function toDocument(
  { callId, step, tool, code, postProcessingContract }: CellStartEvent,
  cell: number,
  runs: readonly CellRun[],
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
    runs: runs.filter((run) => run.cell === cell),
  };
}
