import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";
import { nextMessage } from "../../waiting/next-message.ts";
import type { FoundImport } from "./find-imports.ts";

export interface PythonSyntaxError {
  /** Counted from 1, in characters. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** `crashed`: nested so deeply that the parser's stack was not enough; CPython's would not be either. */
export type ParsedPython =
  | {
      readonly status: "parsed";
      readonly errors: readonly PythonSyntaxError[];
      readonly errorCount: number;
      readonly imports: readonly FoundImport[];
    }
  | { readonly status: "timeout" }
  | { readonly status: "crashed" };

/** Parses Python 3.13 in a thread of its own, which starts at the first use (about half a second), stays warm, and is replaced when a text is too much for it. */
export interface PythonParser extends AsyncDisposable {
  /** Texts are parsed one at a time; the limit counts from when a text's turn comes. */
  parse(code: string): Promise<ParsedPython>;
  /** Idempotent. An idle parser does not keep the process alive, so closing is for tests and orderly ends. */
  close(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;

export function createPythonParser({ timeoutMs = 5_000 }: { timeoutMs?: number } = {}): PythonParser {
  let worker: Worker | null = null;
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let closed = false;

  /** The thread is asked at once when nobody waits for it, so that it works while the caller goes on. */
  function parse(code: string): Promise<ParsedPython> {
    const answer = waiting === 0 ? parseNow(code) : queue.then(() => parseNow(code));
    waiting += 1;
    const release = (): void => {
      waiting -= 1;
    };
    queue = answer.then(release, release);
    return answer;
  }

  async function parseNow(code: string): Promise<ParsedPython> {
    if (closed) throw new UsageError({ code: "PARSER_CLOSED", message: "The Python parser is closed." });
    worker ??= await startWorker();
    const current = worker;
    const answer = nextMessage<ParsedPython>(current, timeoutMs);
    current.postMessage(code);
    const parsed = await answer;
    if (parsed !== "timeout" && parsed !== "ended" && parsed.status === "parsed") return parsed;
    worker = null;
    await current.terminate();
    return { status: parsed === "timeout" ? "timeout" : "crashed" };
  }

  async function close(): Promise<void> {
    closed = true;
    await queue;
    await worker?.terminate();
    worker = null;
  }

  return { parse, close, [Symbol.asyncDispose]: close };
}

async function startWorker(): Promise<Worker> {
  const program = join(import.meta.dirname, `parse-python-process${extname(import.meta.filename)}`);
  const worker = new Worker(program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 4 } });
  let failure: unknown;
  worker.on("error", (error) => {
    failure = error;
  });
  const ready = await nextMessage<"ready">(worker, START_TIMEOUT_MS);
  if (ready === "ready") return worker;
  await worker.terminate();
  throw new SluiceError({
    code: "PYTHON_PARSER_UNAVAILABLE",
    message: "The parser that checks Python code before it is run did not start.",
    hint: "Run `npm install`: the package @astral-sh/ruff-wasm-nodejs may be missing.",
    cause: failure,
  });
}
