import type { ToolErrorFacts } from "../errors/tool-error.ts";
import type { EndingLimit } from "../execute/engine.ts";
import { montyModules } from "./describe-execute.ts";

/** What a model reads when a script of `execute` fails: what to write instead. */

export const executeHints = {
  crash: "Very deep nesting and unbounded recursion of coroutines cause this. Use flatter data or fewer steps.",
  unsupportedSyntax:
    "Nothing was run. Use functions, dicts, if/elif and comprehensions; classes, match, del, yield, async for and async with are not supported.",
  invalidSyntax: "Nothing was run. Fix the syntax and send the whole script again.",
  tooManyValues: "Send fewer values per call, or send them as one string.",
  noNan: "Send null, or leave the parameter out.",
  dictParameters: 'Write await call_tool(name, {"parameter": value}).',
  longIntegers: "Send long identifiers as strings: str(value).",
  flatterParameters: "Send flatter parameters.",
  continueLater: "Return what you have and continue in another execute call.",
  largerPages: "Request more items per call: page size, filters, lists of ids.",
  doNotRepeat: "The tool has done its work: do not call it again if it changes something.",
  withoutIdentity: "No identities, regions or profiles are configured here. Call tools without them.",
  emptyScript: "Send Python in `code`.",
  optionalModule: "If the script works without the module, catch ImportError.",
} as const;

/** What each limit that ends a script says. `{allowed}` is replaced by the limit. */
export const limitErrors: Readonly<Record<EndingLimit, Pick<ToolErrorFacts, "code" | "summary" | "hints">>> = {
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

/** Hints for an exception that Monty raises where CPython would not: what to write instead. */
export function adviseOnException(exception: string): string[] {
  return exceptionAdvice.filter(({ pattern }) => pattern.test(exception)).map(({ hint }) => hint);
}

const noClock = "Monty has no clock: take the current date from your instructions or from a tool result.";

const exceptionAdvice: readonly { readonly pattern: RegExp; readonly hint: string }[] = [
  { pattern: /'str' object has no attribute 'format'|operand type\(s\) for %: 'str'/, hint: "Use an f-string: f'{value:.2f}'." },
  {
    pattern: /'(?:datetime\.now|date\.today)' is not supported|object has no attribute '(?:now|today|utcnow)'/,
    hint: noClock,
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

/** What to do instead of importing a blocked module. `ownAdvice` is the advice in the interpreter's own message, if any. */
export function adviseOnModule(module: string, ownAdvice?: string): string {
  const top = module.split(".")[0]!;
  if (networkModules.includes(top) && module !== "urllib.parse")
    return "There is no network here: get data with await call_tool(name, params).";
  if (ownAdvice !== undefined) return ownAdvice;
  const found = moduleAdvice.find(({ modules }) => modules.includes(module) || modules.includes(top));
  return found?.text ?? `Available modules: ${montyModules.join(", ")}. For anything else use a tool: await call_tool(name, params).`;
}

/** Blocked in both engines. */
const networkModules = "requests httpx aiohttp urllib urllib3 http socket ssl ftplib smtplib websockets xmlrpc".split(" ");

/** Used for Monty if it is the only engine, or if the import is inside try. */
const moduleAdvice: readonly { readonly modules: readonly string[]; readonly text: string }[] = [
  {
    modules: ["urllib.parse", "base64", "hashlib", "hmac", "binascii", "uuid", "secrets", "zlib", "gzip"],
    text: "Use a tool for hashing, encoding and URLs: await call_tool(name, params).",
  },
  {
    modules: ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "sklearn", "seaborn", "polars"],
    text: "Use code_interpreter for analysis and figures: pass it the aliases that this answer lists.",
  },
  {
    modules: ["time"],
    text: `${noClock} Do not sleep: return after one status check, and check again in a later call.`,
  },
  {
    modules: ["sched", "threading", "multiprocessing", "concurrent", "subprocess", "signal"],
    text: "Do not sleep or start processes here: return after one status check, and check again in a later call.",
  },
  {
    modules: ["collections", "itertools", "functools"],
    text: "Use built-ins and comprehensions: dict.setdefault, sorted, sum, zip, nested loops.",
  },
  {
    modules: ["statistics", "random", "fractions", "decimal"],
    text: "Use arithmetic and math; for money use int in the smallest unit.",
  },
  { modules: ["dataclasses", "enum"], text: "Use dict and plain functions." },
  { modules: ["string", "textwrap"], text: "Use the methods of str, f-strings and re." },
];
