/** The modules that Monty has. Importing any other raises ModuleNotFoundError. */
export const montyModules: readonly string[] = ["asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "typing"];

/** What to do instead of importing a blocked module. `ownAdvice` is the advice in the interpreter's own message, if any. */
export function adviseOnModule(module: string, ownAdvice?: string): string {
  const top = module.split(".")[0]!;
  if (networkModules.includes(top) && module !== "urllib.parse")
    return "There is no network here: get data with await call_tool(name, params).";
  if (ownAdvice !== undefined) return ownAdvice;
  const found = advice.find(({ modules }) => modules.includes(module) || modules.includes(top));
  return found?.text ?? `Available modules: ${montyModules.join(", ")}. For anything else use a tool: await call_tool(name, params).`;
}

/** Blocked in both engines. */
const networkModules = "requests httpx aiohttp urllib urllib3 http socket ssl ftplib smtplib websockets xmlrpc".split(" ");

/** Used for Monty if it is the only engine, or if the import is inside try. */
const advice: readonly { readonly modules: readonly string[]; readonly text: string }[] = [
  {
    modules: ["urllib.parse", "base64", "hashlib", "hmac", "binascii", "uuid", "secrets", "zlib", "gzip"],
    text: "Use a tool for hashing, encoding and URLs: await call_tool(name, params).",
  },
  {
    modules: ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "sklearn", "seaborn", "polars"],
    text: "Use code_interpreter for analysis and figures: pass it the aliases that this answer lists.",
  },
  {
    modules: ["time", "sched", "threading", "multiprocessing", "concurrent", "subprocess", "signal"],
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
