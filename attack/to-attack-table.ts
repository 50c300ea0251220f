import type { AttackRow } from "./run-attack.ts";

/** The neighbour's p95 may grow by this factor. */
const GOAL_RATIO = 3;
/** The event loop may be blocked for this long. */
const GOAL_BLOCK_MS = 100;

export interface AttackReport {
  readonly seed: number;
  readonly isShort: boolean;
  readonly quiet: AttackRow;
  readonly rows: readonly AttackRow[];
  /** What the server left behind, as sentences. */
  readonly left: readonly string[];
}

const columns = ["attack", "seconds", "turns", "turn p95", "ratio", "read p95", "ratio", "block", "goals", "promises"] as const;

/** Formats a run as a table, then the failures and how to repeat them. */
export function toAttackTable({ seed, isShort, quiet, rows, left }: AttackReport): string {
  const lines = [[...columns], ...[quiet, ...rows].map((row) => toLine(row, quiet))];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const print = (line: readonly string[]): string =>
    line.map((text, column) => (column === 0 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!))).join("  ");
  const [head, ...body] = lines.map(print);
  const failures = rows.flatMap(({ name, failures: broken }) =>
    broken.map(
      (failure) => `${name}: ${failure}\n  repeat it: npm run attack -- --case ${name} --seed ${seed}${isShort ? " --short" : ""}`,
    ),
  );
  const all = [...quiet.failures, ...failures, ...left];
  const goals = `Goals: the neighbour's p95 at most ${GOAL_RATIO} times its quiet value, the event loop blocked for at most ${GOAL_BLOCK_MS} ms.`;
  const verdict = all.length === 0 ? "Every promise was kept, and nothing was left behind." : all.join("\n");
  return [head, widths.map((width) => "─".repeat(width)).join("  "), ...body, "", goals, verdict].join("\n");
}

function toLine(row: AttackRow, quiet: AttackRow): string[] {
  const [turnRatio, readRatio] = [row.turnP95Ms / quiet.turnP95Ms, row.readP95Ms / quiet.readP95Ms];
  const isMet = turnRatio <= GOAL_RATIO && readRatio <= GOAL_RATIO && row.blockMs <= GOAL_BLOCK_MS;
  const inMs = (value: number): string => `${Math.round(value)} ms`;
  return [
    row.name,
    row.seconds.toFixed(1),
    String(row.turns),
    inMs(row.turnP95Ms),
    row === quiet ? "" : turnRatio.toFixed(1),
    inMs(row.readP95Ms),
    row === quiet ? "" : readRatio.toFixed(1),
    inMs(row.blockMs),
    isMet ? "met" : "missed",
    row.failures.length === 0 ? "kept" : "BROKEN",
  ];
}
