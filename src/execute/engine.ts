import { z } from "zod";
import { count, milliseconds } from "../protocol/setting.ts";

/**
 * An engine runs one script: async Python with `await call_tool(name, params)` in scope. There are two, `monty` and `cpython`. Limits, tool errors and
 * the form of results are implemented once, above them. A failed script is an outcome. `run` rejects only if the engine is unavailable, or with
 * `signal.reason`.
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
 * Runs one `call_tool` of a script. Never rejects: a failure is the message of the RuntimeError that Python raises. Values are passed as JSON text, so
 * that floats stay floats and long integers stay exact.
 */
export type CallTool = (call: { readonly name: string; readonly paramsJson: string; readonly signal: AbortSignal }) => Promise<ToolReply>;
/** Bytes in `json` are UTF-8. */
export type ToolReply = { readonly ok: true; readonly json: string | Uint8Array } | { readonly ok: false; readonly message: string };

export const executeLimitsSchema = z.strictObject({
  executionMs: milliseconds.default(30_000).describe("time limit for the script's own code; waiting for tools is not included"),
  totalMs: milliseconds.default(300_000).describe("time limit for the whole script, including waiting for tools"),
  memoryBytes: count.default(100_000_000).describe("memory that the script may use"),
  toolCalls: count.default(50).describe("tool calls per script"),
  concurrentToolCalls: count.default(16).describe("tool calls of one script that may run at the same time"),
  codeBytes: count.default(256 * 1024).describe("size of the script's code"),
  printBytes: count.default(64 * 1024).describe("printed output that is kept; the middle of longer output is cut"),
  resultBytes: count.default(10_000_000).describe("size of the script's result as JSON"),
});

export type ExecuteLimits = Readonly<z.infer<typeof executeLimitsSchema>>;

export const defaultExecuteLimits: ExecuteLimits = executeLimitsSchema.parse({});

/** Which engine runs scripts, and how Monty is isolated. */
export const executeSettingsSchema = z.strictObject({
  engine: z
    .enum(["auto", "monty", "cpython"])
    .default("auto")
    .describe("the engine that runs scripts: `auto`, `monty` or `cpython`, see [execute.md](execute.md)"),
  isolation: z
    .enum(["namespaces", "process-only"])
    .default("namespaces")
    .describe("how the `monty` engine is isolated; `process-only` is weaker, see [execute.md](execute.md)"),
});

export type ExecuteSettings = Readonly<z.infer<typeof executeSettingsSchema>>;

export const defaultExecuteSettings: ExecuteSettings = executeSettingsSchema.parse({});

/** Maximum size of one call's parameters as JSON. Engines raise a Python exception for more. */
export const maxParamsBytes: number = 4 * 1024 * 1024;

export interface EngineOutcome {
  readonly end: EngineEnd;
  readonly prints: string;
  /** Bytes cut from the middle of `prints`. */
  readonly printsOmittedBytes: number;
  /** Names of tools whose call was started but never awaited. */
  readonly unawaited: readonly string[];
  readonly toolCalls: number;
  /** Computing time of the script, measured by the host. */
  readonly executionMs: number;
  /** Sentences about values that have no JSON form and were converted. */
  readonly warnings?: readonly string[] | undefined;
}

export type EngineEnd =
  | { readonly kind: "value"; readonly json: string }
  /** An exception that the script did not catch. `line` counts from 1 in the script itself. */
  | {
      readonly kind: "exception";
      readonly type: string;
      readonly message: string;
      readonly line?: number | undefined;
      readonly column?: number | undefined;
      readonly sourceLine?: string | undefined;
      readonly traceback?: string | undefined;
    }
  /** The parser refused the script, so nothing ran. */
  | {
      readonly kind: "syntax";
      readonly unsupported: boolean;
      readonly message: string;
      readonly line?: number | undefined;
      readonly column?: number | undefined;
    }
  | { readonly kind: "limit"; readonly limit: EndingLimit; readonly allowed: number; readonly seen?: number | undefined }
  | { readonly kind: "crashed"; readonly detail: string };

/** Limits that end a script. The others cut the printed output or delay calls. */
export type EndingLimit = Exclude<keyof ExecuteLimits, "printBytes" | "concurrentToolCalls">;
