import { scriptFrame, type EndedFrame, type ScriptFrame } from "../../protocol/worker-frames.ts";
import type { Lease, Usage } from "../../sandbox/contract.ts";
import { runInWorker, createStreamText, findLostCause, type WorkerEnd } from "../../sandbox/run-in-worker.ts";
import { protocolViolation } from "../../sandbox/frame-channel.ts";
import { maxParamsBytes, type EngineOutcome, type ExecuteLimits, type Script, type ToolReply, type EngineEnd } from "../engine.ts";
import { createScriptClock } from "../create-script-clock.ts";
import { createToolCalls } from "../create-tool-calls.ts";
import { isUtf8 } from "node:buffer";
import { isJson } from "../../evidence/reading/create-output-reader.ts";
import type { CellError } from "../../protocol/outcome.ts";

/** A sandbox runs one script, so this is always its number. */
const SCRIPT_NUMBER = 1;
/** How long the worker gets to end a script, and to send what it has printed, before the whole sandbox is ended. */
const INTERRUPT_GRACE_MS = 1_000;
/** A frame to the worker, prefix and header included, has at most 64 MB. */
const MAX_REPLY_BYTES = 60 * 1024 * 1024;

/** Runs a script in a sandbox that has run nothing yet. The sandbox is the caller's to close, and can run nothing else. Rejects only with `signal.reason`. */
export async function runScript({ lease, script }: { lease: Lease; script: Script }): Promise<EngineOutcome> {
  const { limits, signal } = script;
  signal?.throwIfAborted();
  const before = await lease.usage().catch((): Usage => ({ peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 }));
  const prints = createStreamText();
  const started = performance.now();
  let stop: ScriptStop | null = null;
  let begun = 0;
  let refused = false;
  let grace: NodeJS.Timeout | undefined;

  const end = (why: ScriptStop): void => {
    if (stop !== null) return;
    stop = why;
    abandon();
    if (why === "aborted") return void lease.close();
    grace = setTimeout(() => void lease.close(), INTERRUPT_GRACE_MS);
    lease.channel.send({ type: "interrupt", cell: SCRIPT_NUMBER }).catch(() => {}); // a sandbox that is gone says so by itself
  };
  using clock = createScriptClock({ limits, cpuMs: async () => (await lease.usage()).cpuMs - before.cpuMs, onOver: end });
  const calls = createToolCalls({
    callTool: script.callTool,
    limits,
    onReply: (id, reply) => void sendReply(lease, id, reply),
    onWaiting: (waiting) => (waiting ? clock.pause() : clock.resume()),
  });
  const abandon = (): void => calls.abandon(signal?.aborted ? signal.reason : new Error("the script that made this call has ended"));
  const abort = (): void => end("aborted");
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted) abort();
  try {
    const seen = await runInWorker({
      lease,
      firstFrame: { type: "script", cell: SCRIPT_NUMBER, rollback: "none", limits: toWorkerLimits(limits) },
      code: Buffer.from(script.code, "utf8"),
      frames: scriptFrame,
      streams: { stdout: prints, stderr: createStreamText() },
      maxOutputBytes: limits.printBytes,
      async onFrame({ id, name }, body) {
        if (id !== begun) throw protocolViolation(`call ${id} where call ${begun} is next`);
        begun += 1;
        refused ||= !calls.start({ id, name: name.toWellFormed(), paramsJson: toParamsJson(body) });
        if (refused) end("toolCalls");
        await calls.room();
        return null;
      },
    });
    const executionMs = clock.executionMs();
    clock[Symbol.dispose]();
    signal?.throwIfAborted();
    const totalMs = performance.now() - started;
    const verdict = await judgeScript({
      seen,
      stop,
      lease,
      before,
      limits,
      executionMs,
      totalMs,
      toolCalls: calls.count,
      code: script.code,
    });
    const done = "frame" in seen && seen.frame.type === "done" ? seen.frame : null;
    return {
      end: verdict,
      prints: prints.text,
      printsOmittedBytes: prints.omittedBytes,
      unawaited: [...new Set(done?.unawaited)].flatMap((id) => calls.nameOf(id) ?? []),
      toolCalls: calls.count,
      executionMs: Math.round(executionMs),
      warnings: done?.warnings ?? [],
    };
  } finally {
    clearTimeout(grace);
    signal?.removeEventListener("abort", abort);
    abandon();
  }
}

function toWorkerLimits({ printBytes, resultBytes, memoryBytes }: ExecuteLimits): Record<string, number> {
  return { stdoutBytes: printBytes, stderrBytes: 0, resultBytes, memoryBytes, paramsBytes: maxParamsBytes };
}

/** Whether they are JSON, and a dict, is judged where calls are made, in the same words for both engines. */
function toParamsJson(body: Uint8Array): string {
  if (body.length > maxParamsBytes) throw protocolViolation(`params of ${body.length} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw protocolViolation("params that are no text");
  }
}

async function sendReply({ channel }: Lease, id: number, reply: ToolReply): Promise<void> {
  const text = reply.ok ? reply.json : reply.message;
  const body = typeof text === "string" ? Buffer.from(text, "utf8") : text;
  const sent =
    body.length <= MAX_REPLY_BYTES
      ? channel.send({ type: "reply", id, ok: reply.ok }, body)
      : channel.send({ type: "reply", id, ok: false }, Buffer.from(tooLarge(body.length)));
  await sent.catch(() => {}); // a sandbox that is gone says so by itself
}

function tooLarge(bytes: number): string {
  return `AnswerTooLarge: the tool answered with ${bytes} bytes, ${MAX_REPLY_BYTES} fit into a script. Ask for less at a time.`;
}

/** Why the host ended a script. */
type ScriptStop = "executionMs" | "totalMs" | "toolCalls" | "aborted";

type DoneFrame = Extract<ScriptFrame, { type: "done" }>;

interface Judged {
  readonly seen: WorkerEnd<DoneFrame | EndedFrame>;
  readonly stop: ScriptStop | null;
  readonly lease: Lease;
  readonly before: Usage;
  readonly limits: ExecuteLimits;
  readonly executionMs: number;
  readonly totalMs: number;
  readonly toolCalls: number;
  readonly code: string;
}

/** The cause, from what the host itself saw; the worker is believed only about the script's own exception. */
async function judgeScript(judged: Judged): Promise<EngineEnd> {
  const { seen, stop, lease, before, limits } = judged;
  if ("frame" in seen && seen.frame.type === "done") return await judgeDone(seen.frame, seen.body, judged);
  if (stop !== null && stop !== "aborted") return { kind: "limit", limit: stop, allowed: limits[stop], seen: Math.ceil(judged[stop]) };
  const after = await lease.usage().catch(() => before);
  const ended = "frame" in seen ? (seen.frame as EndedFrame) : null;
  const lost = "lost" in seen ? seen.lost : "it ended";
  const cause = await findLostCause({ ended, lost, lease, before, after, mayBeDead: ended === null });
  if (cause.kind === "out_of_memory") return outOfMemory(limits);
  return { kind: "crashed", detail: cause.kind === "crashed" ? `The process that ran the script ${cause.how}.` : cause.detail };
}

async function judgeDone(frame: DoneFrame, body: Uint8Array, { limits, code }: Judged): Promise<EngineEnd> {
  const error = frame.error ?? { type: "Error", message: "the script failed and did not say how" };
  switch (frame.status) {
    case "ok":
      return await judgeResult(body, limits);
    case "syntax_error":
      return { kind: "syntax", unsupported: false, message: syntaxMessage(error), line: error.line, column: error.column };
    case "memory_error":
      return outOfMemory(limits);
    case "output_limit":
      return { kind: "limit", limit: "resultBytes", allowed: limits.resultBytes, seen: error.limit?.seen };
    case "python_error":
      return { kind: "exception", ...toException(error, code) };
  }
}

/** That it is a syntax error is said by its kind; of nesting beyond reason Python says something else. */
function syntaxMessage({ type, message }: CellError): string {
  return ["SyntaxError", "IndentationError", "TabError"].includes(type) ? message : `${type}: ${message}`;
}

async function judgeResult(body: Uint8Array, { resultBytes }: ExecuteLimits): Promise<EngineEnd> {
  if (body.length > resultBytes) return { kind: "limit", limit: "resultBytes", allowed: resultBytes, seen: body.length };
  const json = isUtf8(body) ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(body) : null;
  if (json !== null && (await isJson(json))) return { kind: "value", json };
  return { kind: "crashed", detail: "The result that the sandbox sent is not JSON." };
}

function toException(
  { type, message, line, column, traceback }: CellError,
  code: string,
): Omit<Extract<EngineEnd, { kind: "exception" }>, "kind"> {
  // Without a line of the script's own, it happened in the worker, when the result was made to JSON: nobody can do anything with those frames.
  if (line === undefined) return { type, message };
  return { type, message, line, column, sourceLine: code.split(/\r\n|\r|\n/)[line - 1], traceback };
}

function outOfMemory({ memoryBytes }: ExecuteLimits): EngineEnd {
  return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
}
