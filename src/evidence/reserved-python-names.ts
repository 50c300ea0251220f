/** Names that an alias or a local name must not take in Python 3.13: it would not parse, or would hide something that a cell relies on. */
export const pythonKeywords: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda " +
    "nonlocal not or pass raise return try while with yield _ case match type"
  ).split(" "),
);

export const pythonBuiltins: ReadonlySet<string> = new Set(
  (
    "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning " +
    "ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis " +
    "EncodingWarning EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit " +
    "IOError ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError " +
    "MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError " +
    "PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError ResourceWarning " +
    "RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError " +
    "TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError " +
    "Warning ZeroDivisionError _IncompleteInputError __build_class__ __builtins__ __debug__ __doc__ __import__ __loader__ __name__ __package__ " +
    "__spec__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits " +
    "delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input int " +
    "isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow print property quit range repr " +
    "reversed round set setattr slice sorted staticmethod str sum super tuple vars zip"
  ).split(" "),
);

/** What the worker puts into every cell: `sluice.__all__` and the preloaded names. */
export const preloadedPythonNames: ReadonlySet<string> = new Set(
  "align_timeseries derive_change_series render_chart safe_merge_timeseries save_figure set_result to_frame pd np plt sm inputs".split(" "),
);

/** Packages of the snapshot, which cells import under these very names. */
const packageNames: ReadonlySet<string> = new Set("sluice pandas numpy scipy matplotlib statsmodels pyarrow".split(" "));

export function isReservedPythonName(name: string): boolean {
  return pythonKeywords.has(name) || pythonBuiltins.has(name) || preloadedPythonNames.has(name) || packageNames.has(name);
}
