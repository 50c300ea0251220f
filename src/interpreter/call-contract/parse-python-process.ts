import { PositionEncoding, Workspace, type Diagnostic } from "@astral-sh/ruff-wasm-nodejs";
import { serveThread } from "../../concurrency/worker-thread.ts";
import type { ParsedPython } from "./python-parser.ts";

/** The Ruff rules for what CPython's compiler reports as syntax errors. Grammar errors need no rule. */
const compilerRules = [
  ...["F404", "F406", "F407", "F621", "F622", "F633", "F701", "F702", "F704", "F706", "F707"],
  ...["PLE0115", "PLE0116", "PLE0117", "PLE0118", "PLE1142", "PLE1700"],
];

const MAX_ERRORS = 10;

const workspace = new Workspace({ "target-version": "py313", lint: { select: compilerRules } }, PositionEncoding.Utf32);

parse("import math\nx = [math.pi]\n"); // warms up, so that the first real text does not spend its time limit on it
serveThread(parse);

/** A stack overflow throws and ends this thread, because the WebAssembly instance cannot be trusted afterwards. */
function parse(code: string): ParsedPython {
  return { status: "parsed", ...toErrors(workspace.check(code) as Diagnostic[]) };
}

/** Returns the first error of each line in source order. Later errors on a line mostly follow from the first. */
function toErrors(diagnostics: readonly Diagnostic[]): { errors: { line: number; column: number; message: string }[]; errorCount: number } {
  const sorted = diagnostics
    .map(({ message, start_location: start }) => ({ line: start.row, column: start.column, message }))
    .sort((a, b) => a.line - b.line || a.column - b.column);
  const errors = sorted.filter(({ line }, index) => sorted[index - 1]?.line !== line);
  return { errors: errors.slice(0, MAX_ERRORS), errorCount: errors.length };
}
