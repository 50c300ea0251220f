import { parentPort } from "node:worker_threads";
import { PositionEncoding, Workspace, type Diagnostic } from "@astral-sh/ruff-wasm-nodejs";
import { findImports } from "./find-imports.ts";
import type { ParsedPython } from "./python-parser.ts";

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
parentPort?.on("message", (code: string) => parentPort?.postMessage(parse(code)));
parentPort?.postMessage("ready");

function parse(code: string): ParsedPython {
  try {
    const diagnostics = workspace.check(code) as Diagnostic[];
    const imports = /import/.test(code.normalize("NFKC")) ? findImports(code, workspace.tokens(code)) : [];
    return { status: "parsed", ...toErrors(diagnostics), imports };
  } catch {
    return { status: "crashed" }; // a stack overflow; after it this instance is not to be trusted, and the host ends this thread
  }
}

/** The first error of each line, in the order of the text: what follows on a line is mostly its echo. */
function toErrors(diagnostics: readonly Diagnostic[]): { errors: { line: number; column: number; message: string }[]; errorCount: number } {
  const sorted = diagnostics
    .map(({ message, start_location: start }) => ({ line: start.row, column: start.column, message }))
    .sort((a, b) => a.line - b.line || a.column - b.column);
  const errors = sorted.filter(({ line }, index) => sorted[index - 1]?.line !== line);
  return { errors: errors.slice(0, maxErrors), errorCount: errors.length };
}
