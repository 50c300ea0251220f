import { PositionEncoding, Workspace, type Diagnostic } from "@astral-sh/ruff-wasm-nodejs";
import { serveThread } from "../../concurrency/worker-thread.ts";
import type { ParsedPython } from "./validate-code-interpreter-contract.ts";

/** Of Ruff's rules, those that CPython's compiler treats as syntax errors. Errors of the grammar itself come without a rule. */
const compilerRules = [
  "F404",
  "F406",
  "F407",
  "F621",
  "F622",
  "F633",
  "F701",
  "F702",
  "F704",
  "F706",
  "F707",
  "PLE0115",
  "PLE0116",
  "PLE0117",
  "PLE0118",
  "PLE1142",
  "PLE1700",
];

const maxErrors = 10;

const workspace = new Workspace({ "target-version": "py313", lint: { select: compilerRules } }, PositionEncoding.Utf32);

parse("import math\nx = [math.pi]\n"); // compiles what every text needs, so that no text's time is spent on it
serveThread(parse);

/** A stack overflow throws, which ends this thread: the instance is not to be trusted after it. */
function parse(code: string): ParsedPython {
  return { status: "parsed", ...toErrors(workspace.check(code) as Diagnostic[]) };
}

/** The first error of each line, in the order of the text: what follows on a line is mostly its echo. */
function toErrors(diagnostics: readonly Diagnostic[]): { errors: { line: number; column: number; message: string }[]; errorCount: number } {
  const sorted = diagnostics
    .map(({ message, start_location: start }) => ({ line: start.row, column: start.column, message }))
    .sort((a, b) => a.line - b.line || a.column - b.column);
  const errors = sorted.filter(({ line }, index) => sorted[index - 1]?.line !== line);
  return { errors: errors.slice(0, maxErrors), errorCount: errors.length };
}
