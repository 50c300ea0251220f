import type { Turn } from "../open-turn.ts";

/** How often the model is made to mend one sparse figure before it becomes a gap. */
const MAX_FORCED_EDITS = 2;

/** The one tool that may be called in this step; null when the model chooses. */
export function chooseForced(turn: Turn, { isLast }: { isLast: boolean }): string | null {
  if (isLast) return "final_response";
  const { editable } = turn.ledger;
  if (editable === null || editable.sparse === null || turn.forcedEdits >= MAX_FORCED_EDITS) return null;
  turn.forcedEdits += 1;
  return "python_code_edit";
}
