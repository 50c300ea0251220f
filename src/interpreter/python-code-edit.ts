import { z } from "zod";
import type { QueuePlace } from "../cells/open-cell-session.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { parseArguments } from "../errors/parse-arguments.ts";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { interpreterHints, interpreterParameters } from "../prompts/interpreter-tools.ts";
import { clipText } from "../text/clip-text.ts";
import { postProcessingContractSchema, type PostProcessingContract } from "./call-contract/code-interpreter-call.ts";
import { runInTurn, runValidCall, toFailureToolError, validateCall, type CallOptions } from "./code-interpreter.ts";
import type { InterpreterTurn } from "./interpreter-turn.ts";
import { toToolResult, type ToolResult } from "./tool-result.ts";

const TOOL = "python_code_edit";
const descriptions = interpreterParameters.python_code_edit;

export const pythonCodeEditCallSchema = z.strictObject({
  edits: z
    .array(
      z.strictObject({
        oldText: z.string().min(1).describe(descriptions.oldText),
        newText: z.string().describe(descriptions.newText),
      }),
    )
    .min(1)
    .max(50)
    .describe(descriptions.edits),
  postProcessingContract: postProcessingContractSchema.optional().describe(descriptions.postProcessingContract),
});

export type PythonCodeEditCall = z.infer<typeof pythonCodeEditCallSchema>;

const example: PythonCodeEditCall = { edits: [{ oldText: "df.sum()", newText: "df.mean()" }] };

/** Edits the last cell's code and runs it again from the state before that cell. Rejects only on abort. */
export async function runPythonCodeEdit(turn: InterpreterTurn, input: unknown, options: CallOptions = {}): Promise<ToolResult> {
  const { signal } = options;
  const refuse = (error: ToolError): ToolResult => toToolResult({ tool: TOOL, error }, turn);
  return await runInTurn(turn, { tool: TOOL, signal }, async (running) => {
    const facts = { tool: TOOL, lead: "The call was not run", code: "INPUT_VALIDATION_FAILED", examples: [example] } as const;
    const parsed = parseArguments(pythonCodeEditCallSchema, input, facts);
    if (!parsed.ok) return refuse(parsed.toolError);
    if (turn.last === null) return refuse(nothingToEdit());
    const { call } = turn.last;
    const edited = applyEdits(call.code, parsed.data.edits);
    if (!edited.ok) return refuse(unmatchedEdit(edited));
    const { postProcessingContract = call.postProcessingContract } = parsed.data;
    const verdict = await orAbort(validateCall(turn, { ...call, code: edited.code, postProcessingContract }), signal);
    if (!verdict.ok) return refuse(toEditError(verdict.toolError, parsed.data));
    const isUndone = await undoLastCell(turn, running.place, signal);
    try {
      return await runValidCall(turn, verdict.call, { ...options, ...running, tool: TOOL });
    } catch (error) {
      const hasRun = turn.last?.call === verdict.call;
      if (isUndone && !hasRun && signal?.aborted) turn.last = { call, isCommitted: false, isUndone };
      if (!isUndone || hasRun || signal?.aborted) throw error;
      return refuse(toFailureToolError(error, TOOL, [interpreterHints.undone]));
    }
  });
}

/** Goes back to the state before the last cell. Returns whether there was something to undo: a failed cell has left nothing. */
async function undoLastCell(turn: InterpreterTurn, place: QueuePlace, signal?: AbortSignal): Promise<boolean> {
  if (turn.last === null || !turn.last.isCommitted) return false;
  await (await turn.sandbox?.cellSession)?.undo(signal, place);
  turn.last = { ...turn.last, isCommitted: false };
  return true;
}

/** Rewrites the contract's error for an edit. If only the contract was wrong, the example has the same edits with a corrected contract. */
function toEditError(toolError: ToolError, { edits }: PythonCodeEditCall): ToolError {
  const isCodeValid = toolError.details.every(({ path }) => path !== "code");
  const [corrected] = toolError.examples as { postProcessingContract: PostProcessingContract }[];
  return {
    ...toolError,
    tool: TOOL,
    hints: isCodeValid ? toolError.hints : [...toolError.hints, interpreterHints.editedLines],
    examples: [isCodeValid && corrected !== undefined ? { edits, postProcessingContract: corrected.postProcessingContract } : example],
  };
}

function nothingToEdit(): ToolError {
  return createToolError({
    code: "NO_CELL_TO_EDIT",
    tool: TOOL,
    summary: "No cell has been run in this turn, so there is nothing to edit.",
    hints: [interpreterHints.nothingToEdit],
  });
}

function unmatchedEdit({ index, problem, count, nearest }: UnmatchedEdit): ToolError {
  const isMissing = problem === "not_found";
  const code = index === 0 ? "the last cell's code" : "the last cell's code after the earlier edits";
  const issue = isMissing ? `does not occur in ${code}` : `occurs ${count} times in ${code}`;
  return createToolError({
    code: isMissing ? "EDIT_TEXT_NOT_FOUND" : "EDIT_TEXT_AMBIGUOUS",
    tool: TOOL,
    summary: `Nothing was run: edits[${index}].oldText ${issue}.`,
    details: [
      {
        path: `edits[${index}].oldText`,
        issue: `It ${issue}. ${isMissing ? "The nearest lines" : "The lines that contain it"}:\n${nearest}`,
        received_type: "string",
      },
    ],
    hints: [isMissing ? interpreterHints.copyExactly : interpreterHints.makeUnique],
  });
}

interface UnmatchedEdit {
  readonly ok: false;
  readonly index: number;
  readonly problem: "not_found" | "ambiguous";
  readonly count: number;
  /** The lines that are most similar to the text, or all lines that contain it. */
  readonly nearest: string;
}

/** Applies edits one after the other. Each old text must occur exactly once in the code as the earlier edits left it. */
export function applyEdits(code: string, edits: PythonCodeEditCall["edits"]): { ok: true; code: string } | UnmatchedEdit {
  let edited = code;
  for (const [index, { oldText, newText }] of edits.entries()) {
    const matches = findMatches(edited, oldText);
    const [at] = matches;
    if (at === undefined) return { ok: false, index, problem: "not_found", count: 0, nearest: showNearestLines(edited, oldText) };
    if (matches.length > 1) {
      const nearest = showMatchingLines(edited, matches, oldText.length);
      return { ok: false, index, problem: "ambiguous", count: matches.length, nearest };
    }
    edited = edited.slice(0, at) + newText + edited.slice(at + oldText.length);
  }
  return { ok: true, code: edited };
}

const MAX_LINES = 20;
const MAX_LINE_CHARACTERS = 200;

/** Returns the offsets of all matches, including overlapping ones. */
function findMatches(text: string, part: string): number[] {
  if (part === "") return [];
  const offsets: number[] = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) offsets.push(at);
  return offsets;
}

function showMatchingLines(code: string, matches: readonly number[], length: number): string {
  const lineNumbers = new Set<number>();
  const lineAt = (offset: number): number => code.slice(0, offset).split("\n").length - 1;
  for (const at of matches.slice(0, MAX_LINES + 1))
    for (let line = lineAt(at); line <= lineAt(at + length - 1) && lineNumbers.size <= MAX_LINES; line += 1) lineNumbers.add(line);
  return showLines(code.split("\n"), [...lineNumbers]);
}

/** Shows the lines that share the most words with the text, with a line of context on either side. */
function showNearestLines(code: string, text: string): string {
  const lines = code.split("\n");
  const height = Math.min(text.split("\n").length, lines.length);
  const words = new Set(toWords(text));
  let [best, bestScore] = [0, -1];
  for (let start = 0; start + height <= lines.length; start += 1) {
    const score = toWords(lines.slice(start, start + height).join("\n")).filter((word) => words.has(word)).length;
    if (score > bestScore) [best, bestScore] = [start, score];
  }
  const from = Math.max(0, best - 1);
  return showLines(lines, lines.map((_, line) => line).slice(from, best + height + 1));
}

/** Numbers the lines and marks what is cut. */
function showLines(lines: readonly string[], lineNumbers: readonly number[]): string {
  const shown = lineNumbers.slice(0, MAX_LINES).map((line) => `${line + 1}: ${clipText(lines[line]!, MAX_LINE_CHARACTERS)}`);
  return [...shown, ...(lineNumbers.length > MAX_LINES ? ["…"] : [])].join("\n");
}

function toWords(text: string): string[] {
  return text.match(/\w+/g) ?? [];
}
