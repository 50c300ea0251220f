import { appendToPath, quote } from "../../errors/argument-path.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import type { Problem } from "../../errors/schema-problems.ts";
import { adviseOnSyntax, interpreterHints } from "../../prompts/interpreter-tools.ts";
import { isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import type { PythonParser, PythonSyntaxError } from "./python-parser.ts";

/** The fields of a call that could be read. Only their outermost types have been checked. */
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

/** Copies own properties only, so that nothing comes from a prototype. */
function asRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return Object.create(null) as Record<string, unknown>;
  return Object.assign(Object.create(null), value) as Record<string, unknown>;
}

function asArray(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? (value as unknown[]) : null;
}

/** Hints list this many aliases and count the rest. */
const MAX_LISTED = 20;

/** Checks that the contract names at least one alias, and that every alias in the call exists. */
export function aliasProblems({ inputAliases, inputs }: ReadableCall, known: ReadonlySet<string>): Problem[] {
  const problems: Problem[] = [];
  const path = "postProcessingContract.inputAliases";
  if (inputAliases?.length === 0) {
    problems.push({
      code: "ALIAS_REQUIRED",
      path,
      issue: "The contract names no alias; at least one is needed.",
      receivedType: "array",
      hints: [interpreterHints.derivesOnly, knownAliases(known)],
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
  const issue = `No tool output has the alias ${quote(alias)}.${meant}`;
  return [{ code: "ALIAS_UNKNOWN", path, issue, receivedType: "string", hints: [knownAliases(known)] }];
}

function knownAliases(known: ReadonlySet<string>): string {
  if (known.size === 0) return interpreterHints.noOutputs;
  const listed = [...known].slice(-MAX_LISTED);
  const more = known.size > MAX_LISTED ? ` and ${known.size - MAX_LISTED} older ones` : "";
  return `Known aliases: ${listed.join(", ")}${more}.`;
}

/** Checks that local names are Python identifiers and hide no other name of the cell. */
export function localNameProblems({ inputs }: ReadableCall, known: ReadonlySet<string>, helpers: readonly string[]): Problem[] {
  return [...inputs].flatMap(([name, alias]): Problem[] => {
    const shared = { path: appendToPath("inputs", name), receivedType: "string" } as const;
    if (!isPythonIdentifier(name)) {
      const issue = `The local name ${quote(name)} is not a Python identifier.`;
      return [{ code: "LOCAL_NAME_INVALID", issue, hints: [interpreterHints.identifier], ...shared }];
    }
    const why = whyReserved(name, helpers) ?? (known.has(name) && alias !== name ? "the alias of another tool output" : null);
    if (why === null) return [];
    return [
      { code: "LOCAL_NAME_RESERVED", issue: `The local name ${quote(name)} is ${why}.`, hints: [interpreterHints.otherName], ...shared },
    ];
  });
}

/** Checks code without running it: size, characters and syntax. */
export async function codeProblems(
  code: string,
  { parser, maxCodeBytes }: { parser: PythonParser; maxCodeBytes: number },
): Promise<Problem[]> {
  const bytes = Buffer.byteLength(code);
  if (bytes > maxCodeBytes) {
    const issue = `The code has ${bytes} bytes, ${maxCodeBytes} are allowed.`;
    return [codeProblem("CODE_TOO_LONG", issue, [interpreterHints.dataByAlias])];
  }
  if (code.trim() === "") return [codeProblem("CODE_EMPTY", "There is no code.")];
  const invalid = invalidCharacter(code);
  if (invalid !== null) return [invalid];
  const parsed = await parser.parse(code);
  switch (parsed.status) {
    case "timeout":
      return [codeProblem("PYTHON_CHECK_TIMEOUT", "The code could not be checked in time.", [interpreterHints.checkAgain])];
    case "crashed":
      return [codeProblem("PYTHON_UNPARSABLE", "The code is nested too deeply to be parsed.", [interpreterHints.lessNesting])];
    case "parsed":
      return syntaxProblems(parsed.errors, parsed.errorCount, code);
  }
}

/** Finds a character that Python source must not contain. */
function invalidCharacter(code: string): Problem | null {
  const at = code.search(/\0|\uFEFF|\p{Surrogate}/u);
  if (at < 0) return null;
  const before = code.slice(0, at).split(/\r\n|\r|\n/);
  const name = `U+${code.charCodeAt(at).toString(16).toUpperCase().padStart(4, "0")}`;
  const place = { line: before.length, column: Array.from(before.at(-1) ?? "").length + 1 };
  return {
    ...codeProblem("PYTHON_SYNTAX_ERROR", `Line ${place.line}, column ${place.column}: the character ${name} cannot be in Python source.`),
    ...place,
  };
}

function syntaxProblems(errors: readonly PythonSyntaxError[], count: number, code: string): Problem[] {
  const lines = code.split(/\r\n|\r|\n/);
  const more = count > errors.length ? [`There are ${count - errors.length} more lines with errors.`] : [];
  return errors.map(({ line, column, message }) => ({
    ...codeProblem("PYTHON_SYNTAX_ERROR", `Line ${line}, column ${column}: ${sentence(message)}`, [
      ...adviseOnSyntax(message, lines[line - 1] ?? ""),
      ...more,
    ]),
    line,
    column,
  }));
}

function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

function codeProblem(code: Problem["code"], issue: string, hints: readonly string[] = []): Problem {
  return { code, path: "code", issue, receivedType: "string", hints };
}
