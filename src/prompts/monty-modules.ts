/** Modules that Monty has. Whatever else is imported raises ModuleNotFoundError there. */
export const montyModules: readonly string[] = ["asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "typing"];

/** What to do instead of importing a blocked module. `said`: what the interpreter itself says of it. */
export function adviseOn(module: string, said?: string): string {
  const top = module.split(".")[0]!;
  if (networkModules.includes(top) && module !== "urllib.parse")
    return "There is no network here: get data with await call_tool(name, params).";
  if (said !== undefined) return said;
  const found = advice.find(({ modules }) => modules.includes(module) || modules.includes(top));
  return found?.text ?? `Available modules: ${montyModules.join(", ")}. Ask a tool for what they cannot do: await call_tool(name, params).`;
}

/** Both engines refuse them. */
const networkModules = "requests httpx aiohttp urllib urllib3 http socket ssl ftplib smtplib websockets xmlrpc".split(" ");

/** For Monty, where it is the only engine or the import is guarded. */
const advice: readonly { readonly modules: readonly string[]; readonly text: string }[] = [
  {
    modules: ["urllib.parse", "base64", "hashlib", "hmac", "binascii", "uuid", "secrets", "zlib", "gzip"],
    text: "Hashing, encoding and URL work is for a server-side tool: await call_tool(name, params).",
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
