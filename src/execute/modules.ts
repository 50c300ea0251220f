/** Modules that Monty has. Whatever else is imported raises ModuleNotFoundError there. */
export const montyModules: readonly string[] = ["asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "typing"];

/**
 * Modules of the standard library that only compute, and that Monty lacks: a script that imports one without a `try` goes to CPython. A name stands for
 * its submodules too. `time` is not among them, because it is imported in order to sleep.
 */
const computeModules = [
  ...["__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "bz2", "calendar", "cmath", "codecs", "collections", "colorsys"],
  ...[
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "decimal",
    "difflib",
    "email",
    "enum",
    "fnmatch",
    "fractions",
    "functools",
  ],
  ...[
    "graphlib",
    "gzip",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "inspect",
    "io",
    "ipaddress",
    "itertools",
    "keyword",
    "locale",
    "lzma",
    "numbers",
  ],
  ...[
    "operator",
    "pprint",
    "queue",
    "quopri",
    "random",
    "reprlib",
    "secrets",
    "shlex",
    "statistics",
    "string",
    "stringprep",
    "struct",
    "textwrap",
  ],
  ...["timeit", "tomllib", "traceback", "types", "unicodedata", "urllib.parse", "uuid", "warnings", "weakref", "xml", "zlib", "zoneinfo"],
  ...["os.path", "asyncio.exceptions"],
];

/** Whether CPython should run a script that imports this. */
export function isComputeModule(module: string): boolean {
  return computeModules.some((name) => module === name || module.startsWith(`${name}.`));
}

/** What to do instead of importing a blocked module. */
export function adviseOn(module: string): string {
  const top = module.split(".")[0] ?? module;
  const known = advice.find(({ modules }) => modules.includes(module) || modules.includes(top));
  return known?.text ?? `Available modules: ${montyModules.join(", ")}. Ask a tool for what they cannot do: await call_tool(name, params).`;
}

const advice: readonly { readonly modules: readonly string[]; readonly text: string }[] = [
  {
    modules: ["urllib.parse", "base64", "hashlib", "hmac", "binascii", "uuid", "secrets", "zlib", "gzip"],
    text: "Hashing, encoding and URL work is for a server-side tool: await call_tool(name, params).",
  },
  {
    modules: ["requests", "httpx", "aiohttp", "urllib", "urllib3", "http", "socket", "ssl", "ftplib", "smtplib", "websockets", "xmlrpc"],
    text: "There is no network here: get data with await call_tool(name, params).",
  },
  {
    modules: ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "sklearn", "seaborn", "polars"],
    text: "Analysis and figures are for code_interpreter: pass it the aliases that this answer lists.",
  },
  {
    modules: ["time", "sched", "threading", "multiprocessing", "concurrent", "subprocess", "signal"],
    text: "Do not sleep or start anything here: return after one status check, and look again in a later call.",
  },
  {
    modules: ["collections", "itertools", "functools"],
    text: "Use built-ins and comprehensions: dict.setdefault, sorted, sum, zip, nested loops.",
  },
  {
    modules: ["statistics", "random", "fractions", "decimal"],
    text: "Use arithmetic and math; for money count in the smallest unit with int.",
  },
  { modules: ["dataclasses", "enum"], text: "Use dict and plain functions." },
  { modules: ["string", "textwrap"], text: "Use the methods of str, f-strings and re." },
];
