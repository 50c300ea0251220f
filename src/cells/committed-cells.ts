import { createHash } from "node:crypto";
import type { RanCell } from "./run-cell.ts";

export interface CellText {
  readonly code: string;
  readonly names: Readonly<Record<string, string>>;
}

/** The cells of a session whose variables live on, in order. */
export interface CommittedCells {
  readonly cells: readonly CellText[];
  add(cell: CellText, ran: RanCell): void;
  /** Takes the last one away; whether there was one. */
  drop(): boolean;
  clear(): void;
  /** What they were made of is not there any more: those that are committed would give another state. */
  forbidReplay(): void;
  /** Whether running all of them again would give the same state, and soon. */
  canReplay(): boolean;
  /** Runs them again, each by `run`. Null when every one came out as before, else why not. */
  replay(run: (cell: CellText) => Promise<RanCell>): Promise<string | null>;
}

/** Cells are replayed while that takes less than this in all; past it the worker forks before each cell instead. */
const REPLAY_BUDGET_MS = 500;

export function createCommittedCells(): CommittedCells {
  let cells: (CellText & { readonly runMs: number; readonly exact: boolean; readonly resultHash: string })[] = [];
  return {
    get cells() {
      return cells;
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

/** What makes a second run differ from the first: clocks, entropy, identities, other threads, what lies about in directories. Fixed seeds make `random` and `np.random` safe. */
const unstable: readonly RegExp[] = [
  /\b(now|today|utcnow|time|gmtime|localtime|ctime|times|getrusage|getloadavg|clock_gettime|id|hash)\s*\(/,
  /\b(time_ns|perf_counter|monotonic|process_time|thread_time)/,
  /\b(getmtime|getctime|getatime|st_mtime|st_ctime|st_atime|st_ino|scandir|iterdir|listdir|glob|walk)\b/,
  /\/(proc|dev)\//,
  /["'](now|today)["']/,
  /\b(default_rng|RandomState|SeedSequence)\s*\(\s*\)/,
  /\b(urandom|getrandom|uuid1|uuid4|secrets|SystemRandom|getpid|tempfile|threading|subprocess|multiprocessing|asyncio|fork)\b/,
  /\b(import|from)[ \t][\w \t,.]*\btime\b/,
  /(?<![.\w])(exec|eval|__import__|import_module)\s*\(/, // what they run is not in the text
];

/** Whether running this code again from the same state gives the same state, as far as its text tells. Errs on the side of no. */
export function canReplay(code: string): boolean {
  return !unstable.some((pattern) => pattern.test(code));
}
