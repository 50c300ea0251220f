import { setTimeout as sleep } from "node:timers/promises";
import { orAbort } from "../concurrency/or-abort.ts";
import type { ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { isRecord } from "../text/json.ts";
import { DEFAULT_CALL_TIMEOUT_MS, type ToolAnswer, type ToolCallOptions } from "./backend-tool.ts";
import { checkToolInput, unreadableArguments } from "./check-tool-input.ts";
import type { CatalogTool, ToolCatalog } from "./create-tool-catalog.ts";
import { findCredentials, toCredentialError } from "./find-credentials.ts";
import { failureOfAnswer, failureOfError, failureOfTimeout, hideHeaders, type ToolFailure } from "./tool-failure.ts";
import type { ToolPolicy } from "./tool-policy.ts";

export interface BackendCall extends ToolCallOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly name: string;
  /** The tool that the name stands for, where the caller has resolved it already. */
  readonly tool?: CatalogTool | undefined;
  readonly args: unknown;
  /** What the session adds to the arguments after they were checked for credentials, where the tool's schema names it; it replaces what the caller gave. */
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
  /** Without an answer or a word of progress. One minute unless told. */
  readonly timeoutMs?: number | undefined;
  /** A backend that asks to wait longer than this is not called again. Five seconds unless told; 0 means no retry. */
  readonly maxRetryWaitMs?: number | undefined;
  readonly wait?: ((milliseconds: number, signal?: AbortSignal) => Promise<unknown>) | undefined;
  readonly now?: (() => number) | undefined;
}

export type BackendReply =
  | {
      readonly ok: true;
      readonly tool: CatalogTool;
      readonly answer: ToolAnswer;
      readonly warnings: readonly string[];
      readonly attempts: number;
    }
  | {
      readonly ok: false;
      /** Null when there is no such tool. */
      readonly tool: CatalogTool | null;
      readonly failure: ToolFailure;
      readonly warnings: readonly string[];
      /** How often the backend was asked: 0 when the call was refused before. */
      readonly attempts: number;
    };

/**
 * The one way to call a backend tool: name, credentials, policy, schema, then the call, at most twice. A failure is a reply. Rejects with `signal.reason`
 * when the caller gives up, and only then.
 */
export async function callBackendTool(call: BackendCall): Promise<BackendReply> {
  const { catalog, policy, name, args, extraArguments, signal } = call;
  const resolved = call.tool === undefined ? await catalog.resolve(name, signal) : { ok: true as const, tool: call.tool };
  if (!resolved.ok) return refused(null, resolved.toolError);
  const { tool } = resolved;

  const credentials = refuseCredentials(name, args);
  if (credentials !== null) return refused(tool, credentials);

  const judged = policy.judge(tool, name);
  if (judged.verdict === "refused") return refused(tool, judged.toolError);

  const checked = checkToolInput({ name, schema: tool.tool.inputSchema, args, extraArguments });
  if (!checked.ok) return refused(tool, checked.toolError);

  const objection = judged.verdict === "ask" ? await policy.ask(tool, isRecord(args) ? args : {}, signal) : null;
  if (objection !== null) return refused(tool, objection);

  const outcome = await attempt({ ...call, tool, args: checked.args });
  const shown = outcome.ok ? outcome : { ...outcome, failure: hideHeaders(outcome.failure, call.headers) };
  return { ...shown, tool, warnings: checked.warnings };
}

type Attempt = Omit<BackendCall, "args"> & { readonly tool: CatalogTool; readonly args: Readonly<Record<string, unknown>> };
type Outcome =
  | { readonly ok: true; readonly answer: ToolAnswer; readonly attempts: number }
  | { readonly ok: false; readonly failure: ToolFailure; readonly attempts: number };

const MAX_RETRY_WAIT_MS = 5_000;
/** Where the backend does not say how long. */
const RETRY_WAIT_MS = 500;

/** The slot is given back while waiting for the second time. */
async function attempt(call: Attempt): Promise<Outcome> {
  const { catalog, signal, wait = pause } = call;
  const first = await catalog.slots.run(() => callOnce(call, 1), signal);
  const waitMs = first.ok ? null : retryWaitMs(call, first.failure);
  if (waitMs === null) return first;
  await wait(waitMs, signal);
  return await catalog.slots.run(() => callOnce(call, 2), signal);
}

function retryWaitMs({ tool, maxRetryWaitMs = MAX_RETRY_WAIT_MS }: Attempt, failure: ToolFailure): number | null {
  const { readOnlyHint, idempotentHint } = tool.tool.annotations;
  if ((readOnlyHint !== true && idempotentHint !== true) || failure.kind !== "toolError") return null;
  if (failure.toolError["retryable"] !== true || failure.toolError["error_code"] === "UPSTREAM_HTTP_TIMEOUT") return null;
  const asked = retryAfterOf(failure.toolError);
  const waitMs = asked === null ? RETRY_WAIT_MS : asked * 1_000;
  return waitMs <= maxRetryWaitMs ? waitMs : null;
}

function retryAfterOf({ _meta: meta }: ToolError | ForeignToolError): number | null {
  const seconds = isRecord(meta) ? meta["retry_after_seconds"] : undefined;
  return typeof seconds === "number" && seconds >= 0 ? seconds : null;
}

async function callOnce(call: Attempt, attempts: number): Promise<Outcome> {
  const { tool, name, args, signal, onProgress, headers, meta, timeoutMs = DEFAULT_CALL_TIMEOUT_MS, now } = call;
  const context = { tool: name, now };
  const overdue = new AbortController();
  const timer = setTimeout(() => overdue.abort(new DOMException("The tool did not answer in time.", "TimeoutError")), timeoutMs);
  const ended = signal === undefined ? overdue.signal : AbortSignal.any([signal, overdue.signal]);
  const reportProgress: ToolCallOptions["onProgress"] = (progress) => {
    timer.refresh();
    onProgress?.(progress);
  };
  try {
    // A tool that ignores its signal is not waited for.
    const answer = await orAbort(tool.tool.call(args, { signal: ended, onProgress: reportProgress, headers, meta }), ended);
    const failure = failureOfAnswer(answer, context);
    return failure === null ? { ok: true, answer, attempts } : { ok: false, failure, attempts };
  } catch (error) {
    signal?.throwIfAborted();
    return { ok: false, failure: overdue.signal.aborted ? failureOfTimeout(name, timeoutMs) : failureOfError(error, context), attempts };
  } finally {
    clearTimeout(timer);
  }
}

async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => signal?.throwIfAborted());
}

/** The refusal of arguments that hold credentials, or that cannot be read to find out. */
function refuseCredentials(name: string, args: unknown): ToolError | null {
  try {
    const found = findCredentials(args);
    return found.length === 0 ? null : toCredentialError(name, found);
  } catch {
    return unreadableArguments(name);
  }
}

function refused(tool: CatalogTool | null, toolError: ToolError): BackendReply {
  return { ok: false, tool, failure: { kind: "toolError", toolError }, warnings: [], attempts: 0 };
}
