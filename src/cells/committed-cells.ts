import { createHash } from "node:crypto";
import type { ExecutedCell } from "./run-cell.ts";

export interface CellSource {
  readonly code: string;
  /** Local names for aliases. */
  readonly names: Readonly<Record<string, string>>;
}

/** The successful cells of a session, in order. Running them again rebuilds the session's variables. */
export interface CommittedCells {
  readonly cells: readonly CellSource[];
  add(cell: CellSource, executed: ExecutedCell): void;
  /** Removes the last cell. Returns whether there was one. */
  dropLast(): boolean;
  clear(): void;
  /** Marks all current cells as not replayable, because an input that they used has changed. */
  forbidReplay(): void;
  /** Whether running all cells again would give the same state within the replay budget. */
  canReplay(): boolean;
  /** Runs all cells again with `run`. Returns null if each gave the same result as before, otherwise the reason why not. */
  replay(run: (cell: CellSource) => Promise<ExecutedCell>): Promise<string | null>;
}

/** Cells that took longer than this in total are not replayed; the worker forks before each cell instead. */
const REPLAY_BUDGET_MS = 500;

export function createCommittedCells(): CommittedCells {
  let cells: (CellSource & { readonly runMs: number; readonly isDeterministic: boolean; readonly resultHash: string })[] = [];
  return {
    get cells() {
      return cells;
    },
    add({ code, names }, { runMs, resultJson }) {
      cells.push({ code, names, runMs, isDeterministic: looksDeterministic(code), resultHash: sha256(resultJson) });
    },
    dropLast: () => cells.pop() !== undefined,
    clear: () => void cells.splice(0),
    forbidReplay() {
      cells = cells.map((cell) => ({ ...cell, isDeterministic: false }));
    },
    canReplay: () =>
      cells.every(({ isDeterministic }) => isDeterministic) && cells.reduce((sum, { runMs }) => sum + runMs, 0) < REPLAY_BUDGET_MS,
    async replay(run) {
      for (const [index, cell] of cells.entries()) {
        const position = `cell ${index + 1} of ${cells.length}`;
        const { status, resultJson } = await run(cell);
        if (status !== "ok") return `${position} ended as ${status} when it was run again`;
        if (sha256(resultJson) !== cell.resultHash) return `${position} gave a different result when it was run again`;
      }
      return null;
    },
  };
}

function sha256(text: string | null): string {
  return createHash("sha256")
    .update(text ?? "")
    .digest("hex");
}

/**
 * Code that may behave differently when run again: clocks, entropy, object identities, threads, directory listings. `random` and `np.random` are not
 * listed because they are seeded.
 */
const nondeterministic: readonly RegExp[] = [
  /\b(now|today|utcnow|time|gmtime|localtime|ctime|times|getrusage|getloadavg|clock_gettime|id|hash)\s*\(/,
  /\b(time_ns|perf_counter|monotonic|process_time|thread_time)/,
  /\b(getmtime|getctime|getatime|st_mtime|st_ctime|st_atime|st_ino|scandir|iterdir|listdir|glob|walk)\b/,
  /\/(proc|dev)\//,
  /["'](now|today)["']/,
  /\b(default_rng|RandomState|SeedSequence)\s*\(\s*\)/,
  /\b(urandom|getrandom|uuid1|uuid4|secrets|SystemRandom|getpid|tempfile|threading|subprocess|multiprocessing|asyncio|fork)\b/,
  /(?<![.\w])(exec|eval|__import__|import_module)\s*\(/, // the code they run is not in the text
];

/** Guesses from the text whether running the code again gives the same state. When in doubt, returns false. */
export function looksDeterministic(code: string): boolean {
  return !importsTime(code) && !nondeterministic.some((pattern) => pattern.test(code));
}

function importsTime(code: string): boolean {
  return code.split(/[^\w \t,.]+/).some((words) => {
    const start = words.search(/\b(?:import|from)[ \t]/);
    return start >= 0 && /\btime\b/.test(words.slice(start));
  });
}
