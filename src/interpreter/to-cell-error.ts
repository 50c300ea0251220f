import { lookUpError, type ToolErrorCode } from "../errors/error-table.ts";
import { createToolError, type ToolError, type ToolErrorDetail } from "../errors/tool-error.ts";
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

const editHint = "Fix it with python_code_edit: variables are as they were before this cell.";
const rejectedArtifactHints: readonly string[] = ["Fix the artifact that the summary names. Nothing of this cell was published.", editHint];

/** Turns a failed cell into the error that a model reads; returns null if the cell succeeded. */
export function toCellError({ status, error }: CellOutcome, { tool = "code_interpreter" }: { tool?: string } = {}): ToolError | null {
  if (status === "ok") return null;
  return createToolError({
    code: codes[status],
    tool,
    summary: summarize(status, error),
    details: error === undefined ? [] : [toDetail(error)],
    hints: error?.type === "ArtifactRefused" ? rejectedArtifactHints : hintsFor(codes[status]),
  });
}

/** Returns "Type: message" without repeating the type. */
export function describeCellError({ type, message }: CellError): string {
  if (message.startsWith(`${type}: `)) return message;
  return message === "" ? type : `${type}: ${message}`;
}

function hintsFor(code: ToolErrorCode): string[] {
  const { hint, retryable } = lookUpError(code);
  return [...(hint === undefined ? [] : [hint]), ...(retryable ? [] : [editHint])];
}

function summarize(status: FailedStatus, error: CellError | undefined): string {
  if (error === undefined) return `The cell ended as ${status}.`;
  const line = toPosition(error.line);
  const where = line === undefined ? "" : ` (line ${line})`;
  return status === "python_error" || status === "contract_violation" ? `${describeCellError(error)}${where}` : error.message || error.type;
}

function toDetail(error: CellError): ToolErrorDetail {
  const { line, column, traceback, limit } = error;
  const measured = limit === undefined ? "" : ` [${limit.name}: ${limit.seen} seen, ${limit.allowed} allowed]`;
  return {
    path: "code",
    issue: `${describeCellError(error)}${measured}`,
    received_type: "string",
    line: toPosition(line),
    column: toPosition(column),
    traceback,
  };
}

/** Returns undefined for anything that is not a position: the number comes from the sandbox. */
function toPosition(position: number | undefined): number | undefined {
  return position !== undefined && Number.isSafeInteger(position) && position >= 0 ? position : undefined;
}
