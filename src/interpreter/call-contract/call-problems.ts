import { appendToPath, quote } from "../../errors/argument-path.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import type { Problem } from "../../errors/schema-problems.ts";
import { isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import type { PythonParser, PythonSyntaxError } from "./validate-code-interpreter-contract.ts";

/** What can be read of a call, whatever else is wrong with it. Nothing here has been checked but its outermost type. */
export interface ReadableCall {
  readonly code: string | null;
  readonly inputs: ReadonlyMap<string, unknown>;
  readonly operation: unknown;
  readonly reason: unknown;
  readonly inputAliases: readonly unknown[] | null;
  readonly expectedArtifacts: readonly unknown[] | null;
}

export function readCall(input: unknown): ReadableCall {
  const call = asRecord(input);
  const contract = asRecord(call["postProcessingContract"]);
  const { code } = call;
  return {
    code: typeof code === "string" ? code : null,
    inputs: new Map(Object.entries(asRecord(call["inputs"]))),
    operation: contract["operation"],
    reason: contract["reason"],
    inputAliases: asArray(contract["inputAliases"]),
    expectedArtifacts: asArray(contract["expectedArtifacts"]),
  };
}

/** Own properties only, so that nothing comes from a prototype. */
function asRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return Object.create(null) as Record<string, unknown>;
  return Object.assign(Object.create(null), value) as Record<string, unknown>;
}

function asArray(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? (value as unknown[]) : null;
}

/** How many names a hint lists before it only counts. */
const LISTED = 20;

const derivesOnly = "Python derives from tool outputs, it does not acquire: name the aliases that the code reads.";

/** The contract names at least one alias, and every alias that the call names is known. */
export function aliasProblems({
  inputAliases,
  inputs,
  known,
}: {
  inputAliases: readonly unknown[] | null;
  inputs: ReadonlyMap<string, unknown>;
  known: ReadonlySet<string>;
}): Problem[] {
  const problems: Problem[] = [];
  const path = "postProcessingContract.inputAliases";
  if (inputAliases?.length === 0) {
    problems.push({
      code: "ALIAS_REQUIRED",
      path,
      issue: "The contract names no alias; at least one is needed.",
      receivedType: "array",
      hints: [derivesOnly, knownAliases(known)],
    });
  }
  for (const [index, alias] of (inputAliases ?? []).entries()) problems.push(...unknownAlias(alias, appendToPath(path, index), known));
  for (const [name, alias] of inputs) problems.push(...unknownAlias(alias, appendToPath("inputs", name), known));
  return problems;
}

function unknownAlias(alias: unknown, path: string, known: ReadonlySet<string>): Problem[] {
  if (typeof alias !== "string" || known.has(alias)) return [];
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${quote(near)}?`;
  return [
    {
      code: "ALIAS_UNKNOWN",
      path,
      issue: `No tool output has the alias ${quote(alias)}.${meant}`,
      receivedType: "string",
      hints: [knownAliases(known)],
    },
  ];
}

function knownAliases(known: ReadonlySet<string>): string {
  if (known.size === 0) return "There are no tool outputs yet: call a tool that gets the data first, then use the alias of its output.";
  const listed = [...known].slice(-LISTED);
  const more = known.size > LISTED ? ` and ${known.size - LISTED} older ones` : "";
  return `Known aliases: ${listed.join(", ")}${more}.`;
}

/** Local names must be names that Python can bind without taking another one away. */
export function localNameProblems({
  inputs,
  known,
  helpers,
}: {
  inputs: ReadonlyMap<string, unknown>;
  known: ReadonlySet<string>;
  helpers: readonly string[];
}): Problem[] {
  return [...inputs].flatMap(([name, alias]): Problem[] => {
    const path = appendToPath("inputs", name);
    if (!isPythonIdentifier(name)) {
      return [
        {
          code: "LOCAL_NAME_INVALID",
          path,
          issue: `The local name ${quote(name)} is not a Python identifier.`,
          receivedType: "string",
          hints: [identifiers],
        },
      ];
    }
    const why = whyReserved(name, helpers) ?? (known.has(name) && alias !== name ? "the alias of another tool output" : null);
    if (why === null) return [];
    return [
      { code: "LOCAL_NAME_RESERVED", path, issue: `The local name ${quote(name)} is ${why}.`, receivedType: "string", hints: [another] },
    ];
  });
}

const identifiers = "Local names are Python identifiers: letters, digits and underscores, not starting with a digit.";
const another = "Choose another local name, or leave inputs out and use the alias itself.";

/** What can be said about code without running it. */
export async function codeProblems(
  code: string,
  { parser, maxCodeBytes }: { parser: PythonParser; maxCodeBytes: number },
): Promise<Problem[]> {
  const bytes = Buffer.byteLength(code);
  if (bytes > maxCodeBytes) {
    const hints = ["Data is bound by alias; do not write it into the code."];
    return [ofCode("CODE_TOO_LONG", `The code has ${bytes} bytes, ${maxCodeBytes} are allowed.`, hints)];
  }
  if (code.trim() === "") return [ofCode("CODE_EMPTY", "There is no code.")];
  const odd = oddCharacter(code);
  if (odd !== null) return [odd];
  const parsed = await parser.parse(code);
  switch (parsed.status) {
    case "timeout":
      return [
        ofCode("PYTHON_CHECK_TIMEOUT", "The code could not be checked in time.", [
          "Try again; if it happens again, make the code shorter.",
        ]),
      ];
    case "crashed":
      return [ofCode("PYTHON_UNPARSABLE", "The code is nested too deeply to be parsed.", ["Use a loop, or name intermediate values."])];
    case "parsed":
      return syntaxProblems(parsed.errors, parsed.errorCount, code);
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
    ...ofCode("PYTHON_SYNTAX_ERROR", `Line ${place.line}, column ${place.column}: the character ${name} cannot be in Python source.`),
    ...place,
  };
}

function syntaxProblems(errors: readonly PythonSyntaxError[], count: number, code: string): Problem[] {
  const lines = code.split(/\r\n|\r|\n/);
  const more = count > errors.length ? [`There are ${count - errors.length} more lines with errors.`] : [];
  return errors.map(({ line, column, message }) => ({
    ...ofCode("PYTHON_SYNTAX_ERROR", `Line ${line}, column ${column}: ${sentence(message)}`, [
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

function ofCode(code: Problem["code"], issue: string, hints: readonly string[] = []): Problem {
  return { code, path: "code", issue, receivedType: "string", hints };
}
