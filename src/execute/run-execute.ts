import { createToolError, type ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import { executeHints } from "../prompts/execute-hints.ts";
import {
  printsCutWarning,
  resultNotKeptWarning,
  resultPreviewedWarning,
  unawaitedCallWarning,
  unsupportedReason,
} from "../prompts/result-notes.ts";
import { chooseEngine, type EngineChoice, type EngineSetting } from "./choose-engine.ts";
import {
  defaultExecuteLimits,
  defaultExecuteSettings,
  type Engine,
  type EngineName,
  type EngineOutcome,
  type ExecuteLimits,
  type Script,
} from "./engine.ts";
import { createScriptTools, type KeptAlias, type ScriptTools, type ScriptWatch } from "./create-script-tools.ts";
import type { InvokeTool } from "./invoke-tool.ts";
import type { IdentityContext } from "./identity/identity-context.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { toExecuteError } from "./to-execute-error.ts";

export interface ExecuteOptions {
  readonly code: string;
  readonly engines: { readonly monty: Engine; readonly cpython?: Engine | undefined };
  readonly engine?: EngineSetting | undefined;
  readonly limits?: Partial<ExecuteLimits> | undefined;
  readonly evidence: EvidenceStore;
  readonly invoke: InvokeTool;
  readonly identity?: IdentityContext | undefined;
  readonly watch?: ScriptWatch | undefined;
  /** Replaces the policy that all scripts share. */
  readonly policy?: ToolPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ExecuteAnswer {
  readonly status: "ok" | "error";
  /** JSON text, so that long integers stay exact; `null` if the script failed. Over 64 KB it is a preview of `resultAlias`. */
  readonly resultJson: string;
  readonly resultAlias?: string | undefined;
  readonly error?: ToolError | ForeignToolError | undefined;
  readonly prints: string;
  /** Tool results kept as evidence, including those of a script that failed later. */
  readonly aliases: readonly KeptAlias[];
  readonly warnings: readonly string[];
  readonly engine: EngineName;
  readonly engineReason?: string | undefined;
  readonly toolCalls: number;
  readonly timing: { readonly executionMs: number; readonly totalMs: number };
}

/** Larger results are kept as evidence, and the answer has a preview. */
const MAX_INLINE_RESULT_BYTES = 64 * 1024;
const RESULT_PREVIEW_BYTES = 8 * 1024;

/** Runs one script and returns its answer. Every failure is the answer's `error`; rejects only with `signal.reason`. */
export async function runExecute(options: ExecuteOptions): Promise<ExecuteAnswer> {
  const started = performance.now();
  const { code, signal } = options;
  const limits = { ...defaultExecuteLimits, ...options.limits };
  const tools = createScriptTools({ ...options, limits });
  const run: Run = { started, tools, choice: { engine: "monty" } };
  const refusal = refuseCode(code, limits);
  if (refusal !== null) return toAnswer(run, { error: refusal });
  try {
    const outcome = await runOnEngine(run, options, { code, limits, callTool: tools.callTool, signal });
    const { end, prints, toolCalls, executionMs } = outcome;
    const result =
      end.kind === "value" ? await keepResult(end.json, options) : { error: toExecuteError(end, run.choice.engine), warnings: [] };
    const warnings = [...result.warnings, ...tools.warnings, ...warningsOf(outcome)];
    return toAnswer(run, { ...result, prints, warnings, toolCalls, executionMs });
  } catch (error) {
    if (signal?.aborted || !(error instanceof SluiceError)) throw error;
    return toAnswer(run, { error: unavailable(error) });
  }
}

/** The answer as the JSON text that a model reads. The result is inserted verbatim, because parsing would round long integers. */
export function toExecuteJson(answer: ExecuteAnswer): string {
  const { status, resultJson, ...rest } = { ...answer, aliases: answer.aliases.map(withContextAlias) };
  return `{"status":${JSON.stringify(status)},"result":${resultJson},${JSON.stringify(rest).slice(1)}`;
}

/** The prompts and other products call an alias `_contextAlias`. */
function withContextAlias({ alias, ...facts }: KeptAlias): object {
  return { alias, _contextAlias: alias, ...facts };
}

interface Run {
  readonly started: number;
  readonly tools: ScriptTools;
  choice: EngineChoice;
}

/**
 * Chooses an engine and runs the script on it. If Monty's parser does not support the script's syntax, nothing has run yet, and CPython runs it instead.
 * Throws ENGINE_UNAVAILABLE if CPython is required and missing.
 */
async function runOnEngine(
  run: Run,
  { engines: { monty, cpython }, engine = defaultExecuteSettings.engine }: ExecuteOptions,
  script: Script,
): Promise<EngineOutcome> {
  run.choice = chooseEngine(script.code, engine);
  if (run.choice.engine === "cpython") {
    if (cpython !== undefined) return await cpython.run(script);
    const message = "The engine is set to cpython, which is not available here.";
    if (engine === "cpython") throw new SluiceError({ code: "ENGINE_UNAVAILABLE", message });
    run.choice = { engine: "monty" };
  }
  const outcome = await monty.run(script);
  const { end } = outcome;
  if (end.kind !== "syntax" || !end.unsupported || engine !== "auto" || cpython === undefined) return outcome;
  run.choice = { engine: "cpython", reason: unsupportedReason(end) };
  return await cpython.run(script);
}

type AnswerParts = Partial<Omit<ExecuteAnswer, "status" | "timing">> & { readonly executionMs?: number };

function toAnswer({ started, tools, choice: { engine, reason } }: Run, { executionMs = 0, ...parts }: AnswerParts): ExecuteAnswer {
  return {
    status: parts.error === undefined ? "ok" : "error",
    resultJson: "null",
    prints: "",
    aliases: tools.aliases,
    warnings: [],
    engine,
    ...(reason === undefined ? {} : { engineReason: reason }),
    toolCalls: 0,
    ...parts,
    timing: { executionMs: round(executionMs), totalMs: round(performance.now() - started) },
  };
}

function refuseCode(code: string, limits: ExecuteLimits): ToolError | null {
  const bytes = Buffer.byteLength(code);
  if (bytes > limits.codeBytes)
    return toExecuteError({ kind: "limit", limit: "codeBytes", allowed: limits.codeBytes, seen: bytes }, "monty") as ToolError;
  if (code.trim() !== "") return null;
  return createToolError({ code: "CODE_EMPTY", tool: "execute", summary: "The script is empty.", hints: [executeHints.emptyScript] });
}

function unavailable({ message, hint }: SluiceError): ToolError {
  return createToolError({ code: "SANDBOX_UNAVAILABLE", tool: "execute", summary: message, hints: hint === undefined ? [] : [hint] });
}

async function keepResult(
  json: string,
  { evidence, code }: ExecuteOptions,
): Promise<Pick<ExecuteAnswer, "resultJson" | "resultAlias" | "warnings">> {
  const bytes = Buffer.byteLength(json);
  if (bytes <= MAX_INLINE_RESULT_BYTES) return { resultJson: json, warnings: [] };
  try {
    const { alias } = await evidence.keepResult({ json, from: "execute", arguments: { code } });
    const preview = evidence.preview(alias, { maxBytes: RESULT_PREVIEW_BYTES });
    return { resultJson: preview.json, resultAlias: alias, warnings: [resultPreviewedWarning(bytes, alias)] };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { resultJson: "null", warnings: [resultNotKeptWarning(bytes, error.message)] };
  }
}

function warningsOf({ unawaited, printsOmittedBytes, warnings = [] }: EngineOutcome): string[] {
  const names = [...new Set(unawaited)].slice(0, 10);
  return [...names.map(unawaitedCallWarning), ...(printsOmittedBytes > 0 ? [printsCutWarning(printsOmittedBytes)] : []), ...warnings];
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
