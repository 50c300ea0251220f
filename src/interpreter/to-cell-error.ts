import { createToolError, type ToolError, type ToolErrorDetail } from "../errors/tool-error.ts";
import { lookUpError, type ToolErrorCode } from "../errors/error-table.ts";
import type { CellError, CellOutcome, CellStatus } from "../protocol/outcome.ts";

type FailedStatus = Exclude<CellStatus, "ok">;

const codes: Readonly<Record<FailedStatus, ToolErrorCode>> = {
  python_error: "PYTHON_ERROR",
  timeout: "PYTHON_TIMEOUT",
  out_of_memory: "PYTHON_OUT_OF_MEMORY",
  output_limit: "PYTHON_OUTPUT_LIMIT",
  crashed: "PYTHON_CRASHED",
  contract_violation: "CONTRACT_VIOLATION",
  sandbox_lost: "SANDBOX_LOST",
};

const editAgain = "Mend it with python_code_edit: variables are as they were before this cell.";

const refusedHints: readonly string[] = [
  "Mend what the cell gives out as the summary says. Nothing of this cell was published.",
  editAgain,
];

/** A failed cell as the envelope that a model reads in place of `error`; null when it succeeded. What to force next is `toRepair`'s to say. */
export function toCellError({ status, error }: CellOutcome, { tool = "code_interpreter" }: { tool?: string } = {}): ToolError | null {
  if (status === "ok") return null;
  return createToolError({
    code: codes[status],
    tool,
    summary: summarize(status, error),
    details: error === undefined ? [] : [toDetail(error)],
    hints: error?.type === "ArtifactRefused" ? refusedHints : hintsOf(codes[status]),
  });
}

function hintsOf(code: ToolErrorCode): string[] {
  const { hint, retryable } = lookUpError(code);
  return [...(hint === undefined ? [] : [hint]), ...(retryable ? [] : [editAgain])];
}

function summarize(status: FailedStatus, error: CellError | undefined): string {
  if (error === undefined) return `The cell ended as ${status}.`;
  const line = whole(error.line);
  const where = line === undefined ? "" : ` (line ${line})`;
  return status === "python_error" || status === "contract_violation" ? `${nameAndMessage(error)}${where}` : error.message || error.type;
}

function toDetail(error: CellError): ToolErrorDetail {
  const { line, column, traceback, limit } = error;
  const measured = limit === undefined ? "" : ` [${limit.name}: ${limit.seen} seen, ${limit.allowed} allowed]`;
  return {
    path: "code",
    issue: `${nameAndMessage(error)}${measured}`,
    received_type: "string",
    line: whole(line),
    column: whole(column),
    traceback,
  };
}

function nameAndMessage({ type, message }: CellError): string {
  if (message.startsWith(`${type}: `)) return message;
  return message === "" ? type : `${type}: ${message}`;
}

/** The sandbox says where; what it says is not trusted to be a position. */
function whole(position: number | undefined): number | undefined {
  return position !== undefined && Number.isSafeInteger(position) && position >= 0 ? position : undefined;
}
