/** Modules that Monty has. Whatever else is imported raises ModuleNotFoundError there. */
export const montyModules: readonly string[] = ["asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "typing"];

/** What to do instead of importing a blocked module. */
export function adviseOn(module: string): string {
  return (
    adviceFor(module)?.text ??
    `Available modules: ${montyModules.join(", ")}. Ask a tool for what they cannot do: await call_tool(name, params).`
  );
}

/** No engine runs a script that imports this; Monty says so at once. */
export function runsNowhere(module: string): boolean {
  return adviceFor(module)?.runsNowhere === true;
}

interface Advice {
  readonly modules: readonly string[];
  readonly text: string;
  readonly runsNowhere?: boolean;
}

function adviceFor(module: string): Advice | undefined {
  const top = module.split(".")[0]!;
  return advice.find(({ modules }) => modules.includes(module) || modules.includes(top));
}

const advice: readonly Advice[] = [
  {
    modules: ["urllib.parse", "base64", "hashlib", "hmac", "binascii", "uuid", "secrets", "zlib", "gzip"],
    text: "Hashing, encoding and URL work is for a server-side tool: await call_tool(name, params).",
  },
  {
    modules: ["requests", "httpx", "aiohttp", "urllib", "urllib3", "http", "socket", "ssl", "ftplib", "smtplib", "websockets", "xmlrpc"],
    text: "There is no network here: get data with await call_tool(name, params).",
    runsNowhere: true,
  },
  {
    modules: ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "sklearn", "seaborn", "polars"],
    text: "Analysis and figures are for code_interpreter: pass it the aliases that this answer lists.",
    runsNowhere: true,
  },
  {
    modules: ["time", "sched", "threading", "multiprocessing", "concurrent", "subprocess", "signal"],
    text: "Do not sleep or start anything here: return after one status check, and look again in a later call.",
    runsNowhere: true,
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
