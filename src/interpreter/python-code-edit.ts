import { z } from "zod";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { parseArguments } from "../errors/parse-arguments.ts";
import { applyEdits } from "./apply-edits.ts";
import { answerInTurn, checkCall, runCheckedCall, toFailureToolError, type CallOptions } from "./code-interpreter.ts";
import { postProcessingContractSchema, type PostProcessingContract } from "./call-contract/code-interpreter-call.ts";
import { toToolResult, type ToolResult } from "./tool-result.ts";
import type { QueuePlace } from "../cells/open-cell-session.ts";
import type { InterpreterTurn } from "./turn.ts";

const TOOL = "python_code_edit";

export const pythonCodeEditCallSchema = z.strictObject({
  edits: z
    .array(
      z.strictObject({
        oldText: z.string().min(1).describe("Text that is in the code exactly once."),
        newText: z.string().describe("What stands there instead."),
      }),
    )
    .min(1)
    .max(50)
    .describe("Replacements in the code of the last cell, applied one after the other."),
  postProcessingContract: postProcessingContractSchema.optional().describe("A new contract; without it that of the last call holds."),
});

export type PythonCodeEditCall = z.infer<typeof pythonCodeEditCallSchema>;

/** Changes the last cell's code and runs it again from the state before that cell. */
export async function runPythonCodeEdit(turn: InterpreterTurn, input: unknown, options: CallOptions = {}): Promise<ToolResult> {
  const { signal } = options;
  const refused = (error: ToolError): ToolResult => toToolResult({ tool: TOOL, error }, turn);
  return await answerInTurn(turn, { tool: TOOL, signal }, async (held) => {
    const facts = { tool: TOOL, lead: "The call was not run", code: "INPUT_VALIDATION_FAILED", examples: [example] } as const;
    const parsed = parseArguments(pythonCodeEditCallSchema, input, facts);
    if (!parsed.ok) return refused(parsed.toolError);
    if (turn.last === null) return refused(nothingToEdit());
    const { call } = turn.last;
    const edited = applyEdits(call.code, parsed.data.edits);
    if (!edited.ok) return refused(unmatched(edited));
    const { postProcessingContract = call.postProcessingContract } = parsed.data;
    const verdict = await orAbort(checkCall(turn, { ...call, code: edited.code, postProcessingContract }), signal);
    if (!verdict.ok) return refused(ofEdit(verdict.toolError, parsed.data));
    const isUndone = await undoLast(turn, held.place, signal);
    try {
      return await runCheckedCall(turn, verdict.call, { ...options, ...held, tool: TOOL });
    } catch (error) {
      const hasRun = turn.last?.call === verdict.call;
      if (isUndone && !hasRun && signal?.aborted) turn.last = { call, counted: false, isUndone };
      if (!isUndone || hasRun || signal?.aborted) throw error;
      return refused(toFailureToolError(error, TOOL, [nothingInItsPlace]));
    }
  });
}

const example: PythonCodeEditCall = { edits: [{ oldText: "df.sum()", newText: "df.mean()" }] };

/** What the contract says of the code as edited, with an example of an edit: the same edits under a contract that holds, where only that was wrong. */
function ofEdit(toolError: ToolError, { edits }: PythonCodeEditCall): ToolError {
  const isCodeFine = toolError.details.every(({ path }) => path !== "code");
  const [corrected] = toolError.examples as { postProcessingContract: PostProcessingContract }[];
  const fits = isCodeFine && corrected !== undefined;
  return {
    ...toolError,
    tool: TOOL,
    hints: isCodeFine
      ? toolError.hints
      : [...toolError.hints, "Lines and columns are of the code as edited; the last cell's code is as it was."],
    examples: [fits ? { edits, postProcessingContract: corrected.postProcessingContract } : example],
  };
}

const nothingInItsPlace =
  "The last cell was undone and nothing was run in its place: variables are as they were before it. Send the same edit again, which runs the whole cell.";

/** The state before the last cell, and whether there was something to undo. One that failed has left nothing. */
async function undoLast(turn: InterpreterTurn, place: QueuePlace, signal?: AbortSignal): Promise<boolean> {
  if (turn.last === null || !turn.last.counted) return false;
  await (await turn.sandbox?.session)?.undo(signal, place);
  turn.last = { ...turn.last, counted: false };
  return true;
}

function nothingToEdit(): ToolError {
  return createToolError({
    code: "NO_CELL_TO_EDIT",
    tool: TOOL,
    summary: "No cell has been run in this turn, so there is nothing to edit.",
    hints: ["Call code_interpreter first."],
  });
}

function unmatched({
  index,
  problem,
  count,
  nearest,
}: {
  index: number;
  problem: "not_found" | "ambiguous";
  count: number;
  nearest: string;
}): ToolError {
  const code = index === 0 ? "the last cell's code" : "the last cell's code as the edits before it leave it";
  const issue = problem === "not_found" ? `is not in ${code}` : `is ${count} times in ${code}`;
  const shown = problem === "not_found" ? "The nearest lines" : "The lines that have it";
  return createToolError({
    code: problem === "not_found" ? "EDIT_TEXT_NOT_FOUND" : "EDIT_TEXT_AMBIGUOUS",
    tool: TOOL,
    summary: `Nothing was run: edits[${index}].oldText ${issue}.`,
    details: [{ path: `edits[${index}].oldText`, issue: `It ${issue}. ${shown}:\n${nearest}`, received_type: "string" }],
    hints: [
      problem === "not_found" ? "Copy the text exactly, with its spaces." : "Give more of the lines around it, so that it is there once.",
    ],
  });
}
