/** Keywords of Python 3.13, without the soft ones (match, case, type, _), which may be names. */
export const pythonKeywords: ReadonlySet<string> = words(`
  False None True and as assert async await break class continue def del elif else except finally for from global if import in is
  lambda nonlocal not or pass raise return try while with yield
`);

/** `dir(builtins)` of Python 3.13, without dunder names: those are reserved as a group. */
const pythonBuiltins: ReadonlySet<string> = words(`
  ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError BufferError
  BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError
  DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError
  FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError InterruptedError
  IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError
  NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError ProcessLookupError
  PythonFinalizationError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration
  SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError
  UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError
  _IncompleteInputError abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex
  copyright credits delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help
  hex id input int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow print
  property quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip
`);

/** Globals of every cell besides the helpers. */
const preloadedNames: ReadonlySet<string> = new Set(["pd", "np", "plt", "sm", "inputs"]);

/** The helpers (`sluice.__all__`), which are also globals of every cell. */
export const helperNames: ReadonlySet<string> = words(`
  align_timeseries derive_change_series render_chart safe_merge_timeseries save_figure set_result to_frame
`);

/** Valid names that make code hard to read. */
const softKeywords = words("_ case match type");
/** Packages of the snapshot that cells import under these names. */
const packageNames = words("sluice pandas numpy scipy matplotlib statsmodels pyarrow");

const reservedNameSets: readonly ReadonlySet<string>[] = [
  pythonKeywords,
  softKeywords,
  pythonBuiltins,
  preloadedNames,
  helperNames,
  packageNames,
];

/** Whether a name must not become an alias, because it would not parse or would hide something that cells use. */
export function isReservedPythonName(name: string): boolean {
  return reservedNameSets.some((names) => names.has(name));
}

/** Whether CPython accepts the text as a name. It must be in NFKC form, because Python compares names in that form. */
export function isPythonIdentifier(text: string): boolean {
  return /^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(text) && text.normalize("NFKC") === text;
}

/** Why an input must not have this name; null when it may. */
export function whyReserved(name: string, helpers: readonly string[]): string | null {
  if (pythonKeywords.has(name)) return "a Python keyword";
  if (helpers.includes(name)) return "a helper";
  if (preloadedNames.has(name)) return "a preloaded name";
  if (pythonBuiltins.has(name)) return "a Python builtin";
  return /^__.*__$/.test(name) ? "a special Python name" : null;
}

function words(text: string): Set<string> {
  return new Set(text.trim().split(/\s+/));
}
