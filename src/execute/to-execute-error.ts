import { createToolError, parseToolError, type ToolError, type ToolErrorFacts } from "../errors/tool-error.ts";
import { findToolErrorInText, parseForeignToolError, type ForeignToolError } from "../errors/foreign-tool-error.ts";
import type { EndingLimit, EngineEnd, EngineName } from "./engine.ts";
import { adviseOnModule } from "../prompts/describe-execute.ts";

const tool = "execute";
type Failure = Exclude<EngineEnd, { kind: "value" }>;

/** The tool error of a failed script. A tool error that a tool raised and the script did not catch is returned unchanged. */
export function toExecuteError(end: Failure, engine: EngineName): ToolError | ForeignToolError {
  switch (end.kind) {
    case "exception":
      return findToolError(end) ?? toBlockedModuleError(end) ?? toExceptionError(end);
    case "syntax":
      return toSyntaxError(end, engine);
    case "limit":
      return toLimitError(end);
    case "crashed":
      return createToolError({
        code: "SANDBOX_CRASHED",
        tool,
        summary: `${end.detail} Nothing else is affected: the next script gets a new process.`,
        hints: ["Very deep nesting and unbounded recursion of coroutines cause this. Use flatter data or fewer steps."],
      });
  }
}

type ExceptionEnd = Extract<EngineEnd, { kind: "exception" }>;

/** For an exception group (`asyncio.TaskGroup`), the first tool error in it: the group's own message has no facts. */
function findToolError({ type, message, traceback = "" }: ExceptionEnd): ToolError | ForeignToolError | null {
  const found = parseToolError(message) ?? parseForeignToolError(message) ?? findToolErrorInText(message);
  return found ?? (/^(?:Base)?ExceptionGroup$/.test(type) ? findToolErrorInText(traceback) : null);
}

function toBlockedModuleError(end: ExceptionEnd): ToolError | null {
  if (end.type !== "ModuleNotFoundError" && end.type !== "ImportError") return null;
  const [, module, ownAdvice] = /^No module named '([^']+)'(?:\. (.+))?/s.exec(end.message) ?? [];
  if (module === undefined) return null;
  return createToolError({
    code: "SANDBOX_MODULE_BLOCKED",
    tool,
    summary: `The module ${module} is not available here.`,
    details: [toDetail(end, `import of ${module}`)],
    hints: [adviseOnModule(module, ownAdvice), "If the script works without the module, catch ImportError."],
  });
}

function toExceptionError(end: ExceptionEnd): ToolError {
  const message = end.message === "" ? end.type : `${end.type}: ${end.message}`;
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${message}${describeLine(end.line)}`,
    details: [toDetail(end, end.sourceLine?.trim() || message)],
    hints: adviseOnException(end),
  });
}

function toSyntaxError(end: Extract<EngineEnd, { kind: "syntax" }>, engine: EngineName): ToolError {
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${end.unsupported ? "NotImplementedError" : "SyntaxError"}: ${end.message}${describeLine(end.line)}`,
    details: [toDetail(end, end.unsupported ? "not supported by the interpreter" : "invalid Python")],
    hints: [
      end.unsupported && engine === "monty"
        ? "Nothing was run. Use functions, dicts, if/elif and comprehensions; classes, match, del, yield, async for and async with are not supported."
        : "Nothing was run. Fix the syntax and send the whole script again.",
    ],
  });
}

function describeLine(line: number | undefined): string {
  return line === undefined ? "" : ` (line ${line})`;
}

function toDetail(
  end: { line?: number | undefined; column?: number | undefined; traceback?: string | undefined },
  issue: string,
): ToolError["details"][number] {
  return { path: "code", issue, received_type: "python", line: end.line, column: end.column, traceback: end.traceback };
}

function toLimitError({ limit, allowed, seen }: Extract<EngineEnd, { kind: "limit" }>): ToolError {
  const { code, summary, hints } = limitFacts[limit];
  const details = [{ path: limit, issue: seen === undefined ? `more than ${allowed}` : `${seen} of ${allowed}`, received_type: "number" }];
  return createToolError({ code, tool, summary: summary.replace("{allowed}", String(allowed)), details, hints });
}

const limitFacts: Readonly<Record<EndingLimit, Pick<ToolErrorFacts, "code"> & { summary: string; hints: string[] }>> = {
  executionMs: {
    code: "SANDBOX_TIMEOUT",
    summary: "The script reached its limit of {allowed} ms of computing. Waiting for tools does not count.",
    hints: ["Look for a loop that does not end.", "Do long computations in code_interpreter, or let a tool filter on its side."],
  },
  totalMs: {
    code: "SANDBOX_TIMEOUT",
    summary: "The script reached its total time limit of {allowed} ms. Waiting for tools counts.",
    hints: ["Run calls concurrently with asyncio.gather.", "Do not poll: return after one status check, and check again in a later call."],
  },
  memoryBytes: {
    code: "SANDBOX_OUT_OF_MEMORY",
    summary: "The script needed more than {allowed} bytes of memory.",
    hints: [
      "Keep only the fields that you need, page by page.",
      "Every tool result is kept whole under an alias, which code_interpreter can use.",
    ],
  },
  toolCalls: {
    code: "SANDBOX_TOOL_CALL_LIMIT",
    summary: "The script requested far more tool calls than its limit of {allowed}.",
    hints: ["Request more items per call, or continue in another execute call."],
  },
  resultBytes: {
    code: "PYTHON_OUTPUT_LIMIT",
    summary: "The result is larger than {allowed} bytes.",
    hints: ["Return a summary. Every tool result is kept whole under an alias, which code_interpreter can use."],
  },
  codeBytes: {
    code: "CODE_TOO_LONG",
    summary: "The script is larger than {allowed} bytes.",
    hints: ["Send data through tools, not in the script."],
  },
};

/** Hints for exceptions that Monty raises where CPython would not: what to write instead. */
function adviseOnException({ type, message }: { readonly type: string; readonly message: string }): string[] {
  const text = `${type}: ${message}`;
  return advice.filter(({ pattern }) => pattern.test(text)).map(({ hint }) => hint);
}

const advice: readonly { readonly pattern: RegExp; readonly hint: string }[] = [
  { pattern: /'str' object has no attribute 'format'|operand type\(s\) for %: 'str'/, hint: "Use an f-string: f'{value:.2f}'." },
  {
    pattern: /'(?:datetime\.now|date\.today|datetime\.utcnow)' is not supported/,
    hint: "There is no clock here: take the date from a tool result or from the request.",
  },
  {
    pattern: /module 'asyncio' has no attribute 'sleep'/,
    hint: "Do not sleep: return after one status check, and check again in a later call.",
  },
  { pattern: /module 'asyncio' has no attribute '(?!sleep)/, hint: "asyncio has only gather and run here." },
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
    hint: "This builtin does not exist here. Write code for the known shape of the data.",
  },
  {
    pattern: /^PermissionError|'os\.\w+' is not supported/,
    hint: "There are no files and no environment here: get data with await call_tool(name, params).",
  },
  { pattern: /cannot reuse already awaited coroutine/, hint: "Await each call_tool(...) once, and keep its result in a variable." },
  { pattern: /'coroutine'|<coroutine object/, hint: "Write await before call_tool(...)." },
];
