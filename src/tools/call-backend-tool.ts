import { setTimeout as sleep } from "node:timers/promises";
import { orAbort } from "../concurrency/or-abort.ts";
import type { ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { isRecord } from "../text/json.ts";
import { DEFAULT_CALL_TIMEOUT_MS, type ToolAnswer, type ToolCallOptions } from "./backend-tool.ts";
import { checkToolInput, unreadableArguments } from "./check-tool-input.ts";
import type { CatalogTool, ToolCatalog } from "./create-tool-catalog.ts";
import { findCredentials, toCredentialError } from "./find-credentials.ts";
import { asFailure, failureOfAnswer, failureOfError, failureOfTimeout, redactHeaders, type ToolFailure } from "./tool-failure.ts";
import type { ToolPolicy } from "./tool-policy.ts";

export interface BackendCall extends ToolCallOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly name: string;
  /** The tool of this name, if the caller has already resolved it. */
  readonly tool?: CatalogTool | undefined;
  readonly args: unknown;
  /** Arguments of the identity context. Added after the check for credentials if the tool's schema names them; they override the caller's. */
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
  /** Time limit, restarted by every progress notification. Default: 60 s. */
  readonly timeoutMs?: number | undefined;
  /** A call is not retried when the backend asks for a longer wait than this. Default: 5 s. */
  readonly maxRetryWaitMs?: number | undefined;
  /** Waits before a retry. Default: a timer. */
  readonly wait?: ((milliseconds: number, signal?: AbortSignal) => Promise<unknown>) | undefined;
}

/** `tool` is null when no tool has this name. `attempts` is how often the backend was called: 0 when the call was refused before. */
export type BackendReply = { readonly warnings: readonly string[]; readonly attempts: number } & (
  | { readonly ok: true; readonly tool: CatalogTool; readonly answer: ToolAnswer }
  | { readonly ok: false; readonly tool: CatalogTool | null; readonly failure: ToolFailure }
);

/**
 * Calls a backend tool after checking name, credentials, policy and schema; retries once if that is safe. Every failure is a reply; rejects only with
 * `signal.reason`. The answer is kept by the caller: `runBackendTool` passes it to `EvidenceStore.keep`, which splits it into parts (`readToolOutput`) and
 * stores each under an alias.
 */
export async function callBackendTool(call: BackendCall): Promise<BackendReply> {
  const { catalog, policy, name, args, extraArguments, signal } = call;
  const resolved = call.tool === undefined ? await catalog.resolve(name, signal) : { ok: true as const, tool: call.tool };
  if (!resolved.ok) return refused(null, resolved.toolError);
  const { tool } = resolved;

  const credentialError = checkCredentials(name, args);
  if (credentialError !== null) return refused(tool, credentialError);

  const judgement = policy.judge(tool, name);
  if (judgement.verdict === "refused") return refused(tool, judgement.toolError);

  const checked = checkToolInput({ name, schema: tool.tool.inputSchema, args, extraArguments });
  if (!checked.ok) return refused(tool, checked.toolError);

  const disapproval = judgement.verdict === "ask" ? await policy.ask(tool, isRecord(args) ? args : {}, signal) : null;
  if (disapproval !== null) return refused(tool, disapproval);

  const reply = await callWithRetry({ ...call, tool, args: checked.args });
  const redacted = reply.ok ? reply : { ...reply, failure: redactHeaders(reply.failure, call.headers) };
  return { ...redacted, tool, warnings: checked.warnings };
}

/** Refuses arguments that contain credentials or cannot be read. */
function checkCredentials(name: string, args: unknown): ToolError | null {
  try {
    const found = findCredentials(args);
    return found.length === 0 ? null : toCredentialError(name, found);
  } catch {
    return unreadableArguments(name);
  }
}

function refused(tool: CatalogTool | null, toolError: ToolError): BackendReply {
  return { ok: false, tool, failure: asFailure(toolError), warnings: [], attempts: 0 };
}

type CheckedCall = Omit<BackendCall, "args"> & { readonly tool: CatalogTool; readonly args: Readonly<Record<string, unknown>> };
type AttemptReply = { readonly ok: true; readonly answer: ToolAnswer } | { readonly ok: false; readonly failure: ToolFailure };

const MAX_RETRY_WAIT_MS = 5_000;
/** Used when the backend does not say how long to wait. */
const DEFAULT_RETRY_WAIT_MS = 500;

/** Releases its slot while it waits for the retry. */
async function callWithRetry(call: CheckedCall): Promise<AttemptReply & { readonly attempts: number }> {
  const { catalog, signal, wait = sleepUntilAborted } = call;
  const first = await catalog.slots.run(() => callOnce(call), signal);
  const waitMs = first.ok ? null : retryWaitMs(call, first.failure);
  if (waitMs === null) return { ...first, attempts: 1 };
  await wait(waitMs, signal);
  return { ...(await catalog.slots.run(() => callOnce(call), signal)), attempts: 2 };
}

/** Null if the call is not repeated: it may change something, a retry does not help, or the backend asks for too long a wait. */
function retryWaitMs({ tool, maxRetryWaitMs = MAX_RETRY_WAIT_MS }: CheckedCall, failure: ToolFailure): number | null {
  const { readOnlyHint, idempotentHint } = tool.tool.annotations;
  if ((readOnlyHint !== true && idempotentHint !== true) || failure.kind !== "toolError") return null;
  if (failure.toolError["retryable"] !== true || failure.toolError["error_code"] === "UPSTREAM_HTTP_TIMEOUT") return null;
  const requestedSeconds = readRetryAfter(failure.toolError);
  const waitMs = requestedSeconds === null ? DEFAULT_RETRY_WAIT_MS : requestedSeconds * 1_000;
  return waitMs <= maxRetryWaitMs ? waitMs : null;
}

function readRetryAfter({ _meta: meta }: ToolError | ForeignToolError): number | null {
  const seconds = isRecord(meta) ? meta["retry_after_seconds"] : undefined;
  return typeof seconds === "number" && seconds >= 0 ? seconds : null;
}

async function callOnce(call: CheckedCall): Promise<AttemptReply> {
  const { tool, name, args, signal, onProgress, headers, meta, timeoutMs = DEFAULT_CALL_TIMEOUT_MS } = call;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(new DOMException("The tool did not answer in time.", "TimeoutError")), timeoutMs);
  const stop = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]);
  const reportProgress: ToolCallOptions["onProgress"] = (progress) => {
    timer.refresh();
    onProgress?.(progress);
  };
  try {
    // Does not wait for a tool that ignores its signal.
    const answer = await orAbort(tool.tool.call(args, { signal: stop, onProgress: reportProgress, headers, meta }), stop);
    const failure = failureOfAnswer(answer, { tool: name });
    return failure === null ? { ok: true, answer } : { ok: false, failure };
  } catch (error) {
    signal?.throwIfAborted();
    return { ok: false, failure: timeout.signal.aborted ? failureOfTimeout(name, timeoutMs) : failureOfError(error, { tool: name }) };
  } finally {
    clearTimeout(timer);
  }
}

async function sleepUntilAborted(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => signal?.throwIfAborted());
}
