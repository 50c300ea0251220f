/**
 * An engine runs one script: async Python with `await call_tool(name, params)` in scope. There are two, `monty` and `cpython`; everything a model can
 * notice (limits, envelopes, what counts as a result) is above them, once. A script's failure is an outcome, never a rejection; `run` rejects only when
 * the engine itself cannot be had, or with `signal.reason`.
 */
export interface Engine extends AsyncDisposable {
  readonly name: EngineName;
  run(script: Script): Promise<EngineOutcome>;
}

export type EngineName = "monty" | "cpython";

export interface Script {
  readonly code: string;
  readonly limits: ExecuteLimits;
  readonly callTool: CallTool;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a `call_tool` in a script becomes. It never rejects: a failure is the text of the RuntimeError that Python raises. Values travel as JSON text,
 * so that floats stay floats and long integers stay exact.
 */
export type CallTool = (call: { readonly name: string; readonly paramsJson: string; readonly signal: AbortSignal }) => Promise<ToolReply>;
/** `json` as bytes is UTF-8. */
export type ToolReply = { readonly ok: true; readonly json: string | Uint8Array } | { readonly ok: false; readonly message: string };

export interface ExecuteLimits {
  /** The script's own time: waiting for tools does not count. */
  readonly executionMs: number;
  /** All of it, waiting for tools too. */
  readonly totalMs: number;
  readonly memoryBytes: number;
  readonly toolCalls: number;
  readonly concurrentToolCalls: number;
  readonly codeBytes: number;
  readonly printBytes: number;
  readonly resultBytes: number;
}

export const defaultExecuteLimits: ExecuteLimits = {
  executionMs: 30_000,
  totalMs: 300_000,
  memoryBytes: 100_000_000,
  toolCalls: 50,
  concurrentToolCalls: 16,
  codeBytes: 256 * 1024,
  printBytes: 64 * 1024,
  resultBytes: 10_000_000,
};

/** Of one call, as JSON; an engine refuses longer ones with an exception of Python. */
export const maxParamsBytes: number = 4 * 1024 * 1024;

export interface EngineOutcome {
  readonly end: EngineEnd;
  readonly prints: string;
  /** Bytes of `prints` that are missing from its middle. */
  readonly printsOmittedBytes: number;
  /** Calls that were started and whose result the script never awaited: the tools' names. */
  readonly unawaited: readonly string[];
  readonly toolCalls: number;
  /** The script's own time, measured by the host. */
  readonly executionMs: number;
  /** What became of values that have no JSON form, as sentences. */
  readonly warnings?: readonly string[] | undefined;
}

export type EngineEnd =
  | { readonly kind: "value"; readonly json: string }
  /** An exception that the script did not catch. `line` is the user's own, counted from 1. */
  | {
      readonly kind: "exception";
      readonly type: string;
      readonly message: string;
      readonly line?: number | undefined;
      /** Where it is not known which one it was. */
      readonly possibleLines?: readonly number[] | undefined;
      readonly column?: number | undefined;
      readonly sourceLine?: string | undefined;
      readonly traceback?: string | undefined;
    }
  /** Not run at all: the parser refused it. */
  | {
      readonly kind: "syntax";
      readonly unsupported: boolean;
      readonly message: string;
      readonly line?: number | undefined;
      readonly column?: number | undefined;
    }
  | { readonly kind: "limit"; readonly limit: keyof ExecuteLimits; readonly allowed: number; readonly seen?: number | undefined }
  | { readonly kind: "crashed"; readonly detail: string };
