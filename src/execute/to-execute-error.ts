import { createToolError, parseToolError, type ToolError, type ToolErrorFacts } from "../errors/tool-error.ts";
import { findToolErrorInText, parseForeignToolError, type ForeignToolError } from "../errors/foreign-tool-error.ts";
import type { EndingLimit, EngineEnd, EngineName } from "./engine.ts";
import { adviseOn } from "../prompts/monty-modules.ts";

const tool = "execute";
type Failure = Exclude<EngineEnd, { kind: "value" }>;

/** The envelope of a script that failed. One that a tool raised and the script did not catch is given as it is. */
export function toExecuteError(end: Failure, engine: EngineName): ToolError | ForeignToolError {
  switch (end.kind) {
    case "exception":
      return findToolError(end) ?? ofBlockedModule(end) ?? ofException(end);
    case "syntax":
      return ofSyntax(end, engine);
    case "limit":
      return ofLimit(end);
    case "crashed":
      return createToolError({
        code: "SANDBOX_CRASHED",
        tool,
        summary: `${end.detail} Nothing else was harmed; the next script gets a new one.`,
        hints: ["Very deep nesting and unbounded recursion of coroutines do this. Make the script's data flatter, or its steps fewer."],
      });
  }
}

type ExceptionEnd = Extract<EngineEnd, { kind: "exception" }>;

/** Of a group of exceptions (`asyncio.TaskGroup`) the first that is in it: the group's own message says nothing. */
function findToolError({ type, message, traceback = "" }: ExceptionEnd): ToolError | ForeignToolError | null {
  const found = parseToolError(message) ?? parseForeignToolError(message) ?? findToolErrorInText(message);
  return found ?? (/^(?:Base)?ExceptionGroup$/.test(type) ? findToolErrorInText(traceback) : null);
}

function ofBlockedModule(end: ExceptionEnd): ToolError | null {
  if (end.type !== "ModuleNotFoundError" && end.type !== "ImportError") return null;
  const [, module, said] = /^No module named '([^']+)'(?:\. (.+))?/s.exec(end.message) ?? [];
  if (module === undefined) return null;
  return createToolError({
    code: "SANDBOX_MODULE_BLOCKED",
    tool,
    summary: `The module ${module} is not available here.`,
    details: [toDetail(end, `import of ${module}`)],
    hints: [adviseOn(module, said), "A script that can do without may catch ImportError."],
  });
}

function ofException(end: ExceptionEnd): ToolError {
  const said = end.message === "" ? end.type : `${end.type}: ${end.message}`;
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${said}${placeOf(end.line)}`,
    details: [toDetail(end, end.sourceLine?.trim() || said)],
    hints: adviseOnException(end),
  });
}

function ofSyntax(end: Extract<EngineEnd, { kind: "syntax" }>, engine: EngineName): ToolError {
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${end.unsupported ? "NotImplementedError" : "SyntaxError"}: ${end.message}${placeOf(end.line)}`,
    details: [toDetail(end, end.unsupported ? "not supported by the interpreter" : "not Python")],
    hints: [
      end.unsupported && engine === "monty"
        ? "Nothing was run. Write it with functions, dicts, if/elif and comprehensions; classes, match, del, yield, async for and async with are not supported."
        : "Nothing was run. Correct the syntax and send the whole script again.",
    ],
  });
}

function placeOf(line: number | undefined): string {
  return line === undefined ? "" : ` (line ${line})`;
}

function toDetail(
  end: { line?: number | undefined; column?: number | undefined; traceback?: string | undefined },
  issue: string,
): ToolError["details"][number] {
  return { path: "code", issue, received_type: "python", line: end.line, column: end.column, traceback: end.traceback };
}

function ofLimit({ limit, allowed, seen }: Extract<EngineEnd, { kind: "limit" }>): ToolError {
  const { code, summary, hints } = limitFacts[limit];
  const details = [{ path: limit, issue: seen === undefined ? `more than ${allowed}` : `${seen} of ${allowed}`, received_type: "number" }];
  return createToolError({ code, tool, summary: summary.replace("{allowed}", String(allowed)), details, hints });
}

const limitFacts: Readonly<Record<EndingLimit, Pick<ToolErrorFacts, "code"> & { summary: string; hints: string[] }>> = {
  executionMs: {
    code: "SANDBOX_TIMEOUT",
    summary: "The script computed for {allowed} ms, which is its limit; waiting for tools does not count.",
    hints: ["Look for a loop that does not end.", "Work that long belongs into code_interpreter, or into a tool that filters on its side."],
  },
  totalMs: {
    code: "SANDBOX_TIMEOUT",
    summary: "The script took {allowed} ms in all, which is its limit; waiting for tools counts.",
    hints: ["Make calls concurrent with asyncio.gather.", "Do not poll: return after one status check, and look again in a later call."],
  },
  memoryBytes: {
    code: "SANDBOX_OUT_OF_MEMORY",
    summary: "The script needed more than {allowed} bytes of memory.",
    hints: [
      "Keep only the fields that are needed, page by page.",
      "Every tool result is kept whole under an alias: code_interpreter can use it from there.",
    ],
  },
  toolCalls: {
    code: "SANDBOX_TOOL_CALL_LIMIT",
    summary: "The script began far more than the {allowed} tool calls that it may make.",
    hints: ["Ask for more items a call, or go on in another execute call."],
  },
  resultBytes: {
    code: "PYTHON_OUTPUT_LIMIT",
    summary: "The result is over {allowed} bytes.",
    hints: ["Return a summary. Every tool result is kept whole under an alias: code_interpreter can use it from there."],
  },
  codeBytes: {
    code: "CODE_TOO_LONG",
    summary: "The script is over {allowed} bytes.",
    hints: ["Send data through tools, not in the script."],
  },
};

/** What to write instead, for exceptions that Monty raises where CPython would not. */
function adviseOnException({ type, message }: { readonly type: string; readonly message: string }): string[] {
  const text = `${type}: ${message}`;
  return advice.filter(({ pattern }) => pattern.test(text)).map(({ hint }) => hint);
}

const advice: readonly { readonly pattern: RegExp; readonly hint: string }[] = [
  { pattern: /'str' object has no attribute 'format'|operand type\(s\) for %: 'str'/, hint: "Use an f-string: f'{value:.2f}'." },
  {
    pattern: /'(?:datetime\.now|date\.today|datetime\.utcnow)' is not supported/,
    hint: "There is no clock here: take the date from a tool's result or from the request.",
  },
  {
    pattern: /module 'asyncio' has no attribute 'sleep'/,
    hint: "Do not sleep: return after one status check, and look again in a later call.",
  },
  { pattern: /module 'asyncio' has no attribute '(?!sleep)/, hint: "Of asyncio there are gather and run." },
  {
    pattern: /gather\(\) does not yet support keyword/,
    hint: "Instead of return_exceptions=True, put try/except RuntimeError into each coroutine.",
  },
  { pattern: /operand type\(s\) for \|: 'dict' and 'dict'/, hint: "Write {**a, **b}." },
  { pattern: /Value after \* must be an iterable, not range/, hint: "Write list(range(n))." },
  { pattern: /not supported between instances of 'list' and 'list'/, hint: "Sort by a tuple: key=lambda row: (row[0], row[1])." },
  { pattern: /callable replacement is not yet supported/, hint: "Use re.findall and build the text in a loop." },
  { pattern: /'default'/, hint: "Convert values before json.dumps: it takes no default=." },
  {
    pattern: /^NameError: name '(?:object|callable|dir|vars|globals|locals|eval|exec|input)'/,
    hint: "This builtin is not there. Write code that knows the shape of its data.",
  },
  {
    pattern: /^PermissionError|'os\.\w+' is not supported/,
    hint: "There are no files and no environment here: get data with await call_tool(name, params).",
  },
  { pattern: /cannot reuse already awaited coroutine/, hint: "Await each call_tool(...) once, and keep its result in a variable." },
  { pattern: /'coroutine'|<coroutine object/, hint: "Write await before call_tool(...)." },
];
