import { importProblems } from "./import-problems.ts";
import type { Problem } from "./problem.ts";
import type { PythonParser, PythonSyntaxError } from "./python-parser.ts";

/** As the sandbox's own limit. */
const maxCodeBytes: number = 256 * 1024;

/** What can be said about code without running it. */
export async function codeProblems(
  code: string,
  { parser, modules }: { parser: PythonParser; modules: () => ReadonlySet<string> },
): Promise<Problem[]> {
  const bytes = Buffer.byteLength(code);
  if (bytes > maxCodeBytes) {
    const hints = ["Data is bound by alias; do not write it into the code."];
    return [problem("CODE_TOO_LONG", `The code has ${bytes} bytes, ${maxCodeBytes} are allowed.`, hints)];
  }
  if (code.trim() === "") return [problem("CODE_EMPTY", "There is no code.")];
  const odd = oddCharacter(code);
  if (odd !== null) return [odd];
  const parsed = await parser.parse(code);
  switch (parsed.status) {
    case "timeout":
      return [
        problem("PYTHON_CHECK_TIMEOUT", "The code could not be checked in time.", [
          "Try again; if it happens again, make the code shorter.",
        ]),
      ];
    case "crashed":
      return [problem("PYTHON_UNPARSABLE", "The code is nested too deeply to be parsed.", ["Use a loop, or name intermediate values."])];
    case "parsed":
      return [
        ...syntaxProblems(parsed.errors, parsed.errorCount, code),
        ...(parsed.imports.length === 0 ? [] : importProblems(parsed.imports, modules())),
      ];
  }
}

/** What a JavaScript string can hold and Python's source cannot. */
function oddCharacter(code: string): Problem | null {
  const at = code.search(/\0|\uFEFF|\p{Surrogate}/u);
  if (at < 0) return null;
  const before = code.slice(0, at).split(/\r\n|\r|\n/);
  const name = `U+${code.charCodeAt(at).toString(16).toUpperCase().padStart(4, "0")}`;
  const place = { line: before.length, column: Array.from(before.at(-1) ?? "").length + 1 };
  return {
    ...problem("PYTHON_SYNTAX_ERROR", `Line ${place.line}, column ${place.column}: the character ${name} cannot be in Python source.`),
    ...place,
  };
}

function syntaxProblems(errors: readonly PythonSyntaxError[], count: number, code: string): Problem[] {
  const lines = code.split(/\r\n|\r|\n/);
  const more = count > errors.length ? [`There are ${count - errors.length} more lines with errors.`] : [];
  return errors.map(({ line, column, message }) => ({
    ...problem("PYTHON_SYNTAX_ERROR", `Line ${line}, column ${column}: ${sentence(message)}`, [
      ...syntaxHints(message, lines[line - 1] ?? ""),
      ...more,
    ]),
    line,
    column,
  }));
}

/** For what models write most often that is not Python 3. */
function syntaxHints(message: string, line: string): string[] {
  if (message.startsWith("`return`")) return ["A cell is a script: call set_result(value) instead of return."];
  if (/^`(?:await|yield)`/.test(message))
    return ["A cell is a plain script; tools cannot be called from it, and nothing needs to be awaited."];
  if (/^\s*[%!]/.test(line))
    return [
      "IPython magics and shell commands are not Python. Leave them out: nothing can be installed, and figures are saved with save_figure(alt).",
    ];
  if (/^\s*print\s+[^(=\s]/.test(line)) return ["print is a function: print(value)."];
  if (/^\s*```/.test(line)) return ["Send the code alone, without Markdown fences."];
  return [];
}

function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

function problem(code: Problem["code"], issue: string, hints: readonly string[] = []): Problem {
  return { code, path: "code", issue, receivedType: "string", hints };
}
