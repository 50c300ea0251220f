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
  const { code, evidence, invoke, identity, watch, signal } = options;
  const limits = { ...defaultExecuteLimits, ...options.limits };
  const tools = createScriptTools({ invoke, evidence, limits, identity, watch });
  const run: Run = { started, tools, choice: { engine: "monty" } };
  const refusal = refuseCode(code, limits);
  if (refusal !== null) return toAnswer(run, { status: "error", error: refusal });
  try {
    run.choice = chooseAvailableEngine(options);
    const outcome = await runOnEngine(run, options, { code, limits, callTool: tools.callTool, signal });
    const { end, prints, toolCalls, executionMs } = outcome;
    const kept = await keepResult(outcome, options);
    const warnings = [...kept.warnings, ...tools.warnings, ...warningsOf(outcome)];
    const error = end.kind === "value" ? {} : { error: toExecuteError(end, run.choice.engine) };
    return toAnswer(run, { ...kept, ...error, prints, warnings, toolCalls, executionMs });
  } catch (error) {
    if (signal?.aborted || !(error instanceof SluiceError)) throw error;
    return toAnswer(run, { status: "error", error: unavailable(error) });
  }
}

/** The answer as the JSON text that a model reads. The result is inserted verbatim, because parsing would round long integers. */
export function toExecuteJson(answer: ExecuteAnswer): string {
  const { status, resultJson, ...rest } = answer;
  return `{"status":${JSON.stringify(status)},"result":${resultJson},${JSON.stringify(rest).slice(1)}`;
}

interface Run {
  readonly started: number;
  readonly tools: ScriptTools;
  choice: EngineChoice;
}

/** Runs the script on the chosen engine. If Monty's parser does not support its syntax, nothing has run yet, and CPython runs it instead. */
async function runOnEngine(
  run: Run,
  { engines, engine = defaultExecuteSettings.engine }: ExecuteOptions,
  script: Script,
): Promise<EngineOutcome> {
  if (run.choice.engine === "cpython") return requireCpython(engines).run(script);
  const outcome = await engines.monty.run(script);
  const { end } = outcome;
  if (end.kind !== "syntax" || !end.unsupported || engine !== "auto" || engines.cpython === undefined) return outcome;
  run.choice = { engine: "cpython", reason: unsupportedReason(end) };
  return engines.cpython.run(script);
}

type AnswerParts = Pick<ExecuteAnswer, "status"> & Partial<Omit<ExecuteAnswer, "timing">> & { readonly executionMs?: number };

function toAnswer({ started, tools, choice: { engine, reason } }: Run, { executionMs = 0, ...parts }: AnswerParts): ExecuteAnswer {
  return {
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

function chooseAvailableEngine({ code, engine = defaultExecuteSettings.engine, engines }: ExecuteOptions): EngineChoice {
  const choice = chooseEngine(code, engine);
  return choice.engine === "cpython" && engine === "auto" && engines.cpython === undefined ? { engine: "monty" } : choice;
}

function requireCpython(engines: ExecuteOptions["engines"]): Engine {
  if (engines.cpython !== undefined) return engines.cpython;
  throw new SluiceError({ code: "ENGINE_UNAVAILABLE", message: "The engine is set to cpython, which is not available here." });
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
  { end }: EngineOutcome,
  { evidence, code }: ExecuteOptions,
): Promise<Pick<ExecuteAnswer, "status" | "resultJson" | "resultAlias" | "warnings">> {
  if (end.kind !== "value") return { status: "error", resultJson: "null", warnings: [] };
  const bytes = Buffer.byteLength(end.json);
  if (bytes <= MAX_INLINE_RESULT_BYTES) return { status: "ok", resultJson: end.json, warnings: [] };
  try {
    const { alias } = await evidence.keepResult({ json: end.json, from: "execute", arguments: { code } });
    return {
      status: "ok",
      resultJson: evidence.preview(alias, { maxBytes: RESULT_PREVIEW_BYTES }).json,
      resultAlias: alias,
      warnings: [resultPreviewedWarning(bytes, alias)],
    };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return {
      status: "ok",
      resultJson: "null",
      warnings: [resultNotKeptWarning(bytes, error.message)],
    };
  }
}

function warningsOf({ unawaited, printsOmittedBytes, warnings = [] }: EngineOutcome): string[] {
  const names = [...new Set(unawaited)].slice(0, 10);
  return [...names.map(unawaitedCallWarning), ...(printsOmittedBytes > 0 ? [printsCutWarning(printsOmittedBytes)] : []), ...warnings];
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
