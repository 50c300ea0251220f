import { join } from "node:path";
import { WorkerThread, type WorkerFailure } from "../../concurrency/worker-thread.ts";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";

export interface PythonSyntaxError {
  /** Counted from 1, in characters. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** `crashed`: the code is nested too deeply for the parser's stack. CPython's stack would not be enough either. */
export type ParsedPython =
  | { readonly status: "parsed"; readonly errors: readonly PythonSyntaxError[]; readonly errorCount: number }
  | { readonly status: "timeout" }
  | { readonly status: "crashed" };

/** Parses Python 3.13 in a worker thread. The thread starts on first use (about half a second), stays warm, and is replaced when it crashes or hangs. */
export interface PythonParser extends AsyncDisposable {
  /** Parses one text at a time. The time limit of a text starts when its parsing starts. */
  parse(code: string): Promise<ParsedPython>;
  /** Idempotent. An idle parser does not keep the process alive. */
  close(): Promise<void>;
}

export function createPythonParser({ timeoutMs = 5_000 }: { timeoutMs?: number } = {}): PythonParser {
  const thread = new WorkerThread<string, ParsedPython>({
    program: join(import.meta.dirname, "parse-python-process"),
    resourceLimits: () => ({ maxOldGenerationSizeMb: 512, stackSizeMb: 4 }),
    timeoutMs,
  });

  async function parse(code: string): Promise<ParsedPython> {
    try {
      return await thread.ask(code);
    } catch (error) {
      const { reason, cause } = error as WorkerFailure;
      if (reason === "timeout") return { status: "timeout" };
      if (reason === "ended") return { status: "crashed" };
      if (reason === "closed") throw new UsageError({ code: "PARSER_CLOSED", message: "The Python parser is closed." });
      throw parserUnavailable(cause);
    }
  }

  return { parse, close: () => thread.close(), [Symbol.asyncDispose]: () => thread.close() };
}

function parserUnavailable(cause: unknown): SluiceError {
  return new SluiceError({
    code: "PYTHON_PARSER_UNAVAILABLE",
    message: "The parser that checks Python code did not start.",
    hint: "Run `npm install`: the package @astral-sh/ruff-wasm-nodejs may be missing.",
    cause,
  });
}
