import type { StoredEvent } from "../../history/contract.ts";
import type { CellDocument, CellRun } from "../../protocol/http-cells.ts";
import type { CellStartEvent } from "../../protocol/turn-events.ts";

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
