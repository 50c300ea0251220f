/** What to write instead, for exceptions that Monty raises where CPython would not. */
export function adviseOnException({ type, message }: { readonly type: string; readonly message: string }): string[] {
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
