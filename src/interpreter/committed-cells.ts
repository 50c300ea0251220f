import { createHash } from "node:crypto";
import { canReplay } from "./can-replay.ts";
import type { CellRun } from "./run-cell.ts";

export interface CellText {
  readonly code: string;
  readonly names: Readonly<Record<string, string>>;
}

/** The cells of a session whose variables live on, in order. */
export interface CommittedCells {
  readonly count: number;
  add(cell: CellText, ran: CellRun): void;
  /** Takes the last one away; whether there was one. */
  drop(): boolean;
  clear(): void;
  /** What they were made of is not there any more: those that are committed would give another state. */
  forbidReplay(): void;
  /** Whether running all of them again would give the same state, and soon. */
  canReplay(): boolean;
  /** Runs them again, each by `run`. Null when every one came out as before, else why not. */
  replay(run: (cell: CellText) => Promise<CellRun>): Promise<string | null>;
}

/** Cells are replayed while that takes less than this in all; past it the worker forks before each cell instead. */
const REPLAY_BUDGET_MS = 500;

export function createCommittedCells(): CommittedCells {
  let cells: (CellText & { readonly runMs: number; readonly exact: boolean; readonly resultHash: string })[] = [];
  return {
    get count() {
      return cells.length;
    },
    add: ({ code, names }, ran) =>
      void cells.push({ code, names, runMs: ran.runMs, exact: canReplay(code), resultHash: hash(ran.resultJson) }),
    drop: () => cells.pop() !== undefined,
    clear: () => void cells.splice(0),
    forbidReplay: () => {
      cells = cells.map((cell) => ({ ...cell, exact: false }));
    },
    canReplay: () => cells.every(({ exact }) => exact) && cells.reduce((sum, { runMs }) => sum + runMs, 0) < REPLAY_BUDGET_MS,
    async replay(run) {
      for (const [index, cell] of cells.entries()) {
        const which = `cell ${index + 1} of ${cells.length}`;
        const ran = await run(cell);
        if (ran.status !== "ok") return `${which} ended as ${ran.status} when it was run again`;
        if (hash(ran.resultJson) !== cell.resultHash) return `${which} gave another result when it was run again`;
      }
      return null;
    },
  };
}

function hash(text: string | null): string {
  return createHash("sha256")
    .update(text ?? "")
    .digest("hex");
}
