import { clipText } from "../evidence/preview/clip-text.ts";
import type { CellOutcome, CellStatus } from "../protocol/outcome.ts";

const LONGEST_CHARACTERS = 500;

/** What a loop can force next. It stands beside `status` and `error` in a tool's answer, because an answer that succeeded can need one too. */
export interface Repair {
  tool: "python_code_edit";
  because: string;
}

/** Why the code should be edited before the turn goes on; null when there is nothing to repair, or an edit would not help. */
export function toRepair({ status, diagnostics, error }: CellOutcome): Repair | null {
  if (status === "ok") return lowCoverageRepair(diagnostics["lowCoverage"]);
  if (!editHelps(status)) return null;
  return { tool: "python_code_edit", because: error === undefined ? `The cell ended as ${status}.` : describe(error.type, error.message) };
}

/** A lost sandbox is nobody's code. */
function editHelps(status: CellStatus): boolean {
  return status !== "sandbox_lost";
}

function describe(type: string, message: string): string {
  const text = message === "" ? type : message.startsWith(`${type}: `) ? message : `${type}: ${message}`;
  return clipText(text, LONGEST_CHARACTERS);
}

function lowCoverageRepair(lowCoverage: unknown): Repair | null {
  if (!Array.isArray(lowCoverage) || lowCoverage.length === 0) return null;
  const lines = (lowCoverage as Partial<Record<string, unknown>>[]).slice(0, 3).map((line) => {
    const { label, observed, expected } = line;
    return `${JSON.stringify(typeof label === "string" ? clipText(label, 100) : label)} has ${String(observed)} of ${String(expected)} expected points`;
  });
  const more = lowCoverage.length > 3 ? `, and ${lowCoverage.length - 3} more lines` : "";
  return { tool: "python_code_edit", because: `The figure is sparse: ${lines.join("; ")}${more}.` };
}
