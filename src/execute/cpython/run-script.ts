import { isUtf8 } from "node:buffer";
import { isJson } from "../../evidence/reading/create-output-reader.ts";
import type { CellError } from "../../protocol/outcome.ts";
import { scriptFrame, type EndedFrame, type ScriptFrame } from "../../protocol/worker-frames.ts";
import type { Refusal } from "../../sandbox/arriving-contents.ts";
import type { Lease, Usage } from "../../sandbox/contract.ts";
import { protocolViolation } from "../../sandbox/frame-channel.ts";
import { createStreamText, findLostCause, runInWorker, type WorkerEnd } from "../../sandbox/run-in-worker.ts";
import { createScriptClock } from "../create-script-clock.ts";
import { createToolCalls } from "../create-tool-calls.ts";
import { maxParamsBytes, type EngineEnd, type EngineOutcome, type ExecuteLimits, type Script, type ToolReply } from "../engine.ts";

/** A sandbox runs one script, so the number of its cell is always the same. */
const SCRIPT_NUMBER = 1;
/** How long the worker may take to end an interrupted script and send its printed output before the sandbox is killed. */
const INTERRUPT_GRACE_MS = 1_000;
/** A frame to the worker may have 64 MB, including its prefix and header. */
const MAX_REPLY_BYTES = 60 * 1024 * 1024;

/** Runs a script in a sandbox that has run nothing yet and can run nothing afterwards. The caller closes the sandbox. Rejects only with `signal.reason`. */
export async function runScript({ lease, script }: { lease: Lease; script: Script }): Promise<EngineOutcome> {
  script.signal?.throwIfAborted();
  const usageBefore = await lease.usage().catch((): Usage => ({ peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 }));
  using run = new SandboxedScript(lease, script, usageBefore);
  return await run.run();
}

type StopReason = "executionMs" | "totalMs" | "toolCalls" | "aborted";

type DoneFrame = Extract<ScriptFrame, { type: "done" }>;
type ScriptWorkerEnd = WorkerEnd<DoneFrame | EndedFrame>;

/** One script in a sandbox: its time limits, its tool calls, and how it ended. */
class SandboxedScript implements Disposable {
  readonly #lease: Lease;
  readonly #script: Script;
  readonly #usageBefore: Usage;
  readonly #startedAt = performance.now();
  readonly #prints = createStreamText();
  readonly #clock;
  readonly #calls;
  readonly #onAbort = (): void => this.#stop("aborted");
  #stopReason: StopReason | null = null;
  #requestedCalls = 0;
  #graceTimer: NodeJS.Timeout | undefined;

  constructor(lease: Lease, script: Script, usageBefore: Usage) {
    const { callTool, limits, signal } = script;
    this.#lease = lease;
    this.#script = script;
    this.#usageBefore = usageBefore;
    this.#clock = createScriptClock({
      limits,
      cpuMs: async () => (await lease.usage()).cpuMs - usageBefore.cpuMs,
      onOver: (limit) => this.#stop(limit),
    });
    this.#calls = createToolCalls({
      callTool,
      limits,
      onReply: (id, reply) => void sendReply(lease, id, reply),
      onWaiting: (isWaiting) => (isWaiting ? this.#clock.pause() : this.#clock.resume()),
    });
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (signal?.aborted) this.#onAbort();
  }

  async run(): Promise<EngineOutcome> {
    const { code, limits, signal } = this.#script;
    const workerEnd = await runInWorker({
      lease: this.#lease,
      firstFrame: { type: "script", cell: SCRIPT_NUMBER, rollback: "none", limits: toWorkerLimits(limits) },
      code: Buffer.from(code, "utf8"),
      frames: scriptFrame,
      streams: { stdout: this.#prints, stderr: createStreamText() },
      maxOutputBytes: limits.printBytes,
      contentLimits: {
        each: {
          result: { name: "resultBytes", allowed: limits.resultBytes },
          params: { name: "paramsBytes", allowed: maxParamsBytes },
        },
      },
      onFrame: async (call, contents) => {
        await this.#startCall(call, contents.take("params"));
        return null;
      },
      onRefused: () => void this.#lease.close(), // only forged frames exceed these limits: the worker checks them too
    });
    const executionMs = this.#clock.executionMs();
    this.#clock[Symbol.dispose]();
    signal?.throwIfAborted();
    const done = "frame" in workerEnd && workerEnd.frame.type === "done" ? workerEnd.frame : null;
    return {
      end: await this.#findEnd(workerEnd, executionMs),
      prints: this.#prints.text,
      printsOmittedBytes: this.#prints.omittedBytes,
      unawaited: [...new Set(done?.unawaited)].flatMap((id) => this.#calls.nameOf(id) ?? []),
      toolCalls: this.#calls.count,
      executionMs: Math.round(executionMs),
      warnings: done?.warnings ?? [],
    };
  }

  async #startCall({ id, name }: { id: number; name: string }, body: Uint8Array): Promise<void> {
    if (id !== this.#requestedCalls) throw protocolViolation(`call ${id} where call ${this.#requestedCalls} is next`);
    this.#requestedCalls += 1;
    const isStarted = this.#calls.start({ id, name: name.toWellFormed(), paramsJson: toParamsJson(body) });
    if (!isStarted) this.#stop("toolCalls");
    await this.#calls.room();
  }

  /** Interrupts the script so that it can still send its printed output, and kills the sandbox after a grace period. An abort kills it immediately. */
  #stop(reason: StopReason): void {
    if (this.#stopReason !== null) return;
    this.#stopReason = reason;
    this.#abandonCalls();
    if (reason === "aborted") return void this.#lease.close();
    this.#graceTimer = setTimeout(() => void this.#lease.close(), INTERRUPT_GRACE_MS);
    this.#lease.channel.send({ type: "interrupt", cell: SCRIPT_NUMBER }).catch(() => {}); // runInWorker reports a lost sandbox
  }

  #abandonCalls(): void {
    const { signal } = this.#script;
    this.#calls.abandon(signal?.aborted ? signal.reason : new Error("the script that made this call has ended"));
  }

  /** Finds how the script ended from what the host measured. The worker is trusted only about the script's own exception. */
  async #findEnd(workerEnd: ScriptWorkerEnd, executionMs: number): Promise<EngineEnd> {
    const { code, limits } = this.#script;
    if (workerEnd.refused !== undefined) return toRefusedEnd(workerEnd.refused);
    if ("frame" in workerEnd && workerEnd.frame.type === "done")
      return await toEngineEnd(workerEnd.frame, workerEnd.body, { limits, code });
    const reason = this.#stopReason;
    if (reason !== null && reason !== "aborted") {
      const measured = { executionMs, totalMs: performance.now() - this.#startedAt, toolCalls: this.#calls.count };
      return { kind: "limit", limit: reason, allowed: limits[reason], seen: Math.ceil(measured[reason]) };
    }
    const [lease, before] = [this.#lease, this.#usageBefore];
    const after = await lease.usage().catch(() => before);
    const ended = "frame" in workerEnd ? (workerEnd.frame as EndedFrame) : null;
    const lost = "lost" in workerEnd ? workerEnd.lost : "it ended";
    const cause = await findLostCause({ ended, lost, lease, before, after, mayBeDead: ended === null });
    if (cause.kind === "out_of_memory") return outOfMemory(limits);
    return { kind: "crashed", detail: cause.kind === "crashed" ? `The process that ran the script ${cause.how}.` : cause.detail };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#graceTimer);
    this.#clock[Symbol.dispose]();
    this.#script.signal?.removeEventListener("abort", this.#onAbort);
    this.#abandonCalls();
  }
}

function toWorkerLimits({ printBytes, resultBytes, memoryBytes }: ExecuteLimits): Record<string, number> {
  return { stdoutBytes: printBytes, stderrBytes: 0, resultBytes, memoryBytes, paramsBytes: maxParamsBytes };
}

/** Only decodes the text. `createScriptTools` checks that it is a JSON object, with the same messages for both engines. */
function toParamsJson(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw protocolViolation("params that are not UTF-8");
  }
}

async function sendReply({ channel }: Lease, id: number, reply: ToolReply): Promise<void> {
  const text = reply.ok ? reply.json : reply.message;
  const body = typeof text === "string" ? Buffer.from(text, "utf8") : text;
  const sent =
    body.length <= MAX_REPLY_BYTES
      ? channel.send({ type: "reply", id, ok: reply.ok }, body)
      : channel.send({ type: "reply", id, ok: false }, Buffer.from(tooLarge(body.length)));
  await sent.catch(() => {}); // runInWorker reports a lost sandbox
}

function tooLarge(bytes: number): string {
  return `AnswerTooLarge: the tool answered with ${bytes} bytes; a script can receive ${MAX_REPLY_BYTES}. Request less at a time.`;
}

async function toEngineEnd(
  frame: DoneFrame,
  body: Uint8Array,
  { limits, code }: { readonly limits: ExecuteLimits; readonly code: string },
): Promise<EngineEnd> {
  const error = frame.error ?? { type: "Error", message: "the script failed without details" };
  switch (frame.status) {
    case "ok":
      return await toResultEnd(body);
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

/** Omits the type if it is a syntax error, which the kind already says. For too deep nesting, Python raises another type. */
function syntaxMessage({ type, message }: CellError): string {
  return ["SyntaxError", "IndentationError", "TabError"].includes(type) ? message : `${type}: ${message}`;
}

/** Only a script that forges frames gets here: the worker checks the same limits before it sends anything. */
function toRefusedEnd({ message, limit: { name, allowed, seen } }: Refusal): EngineEnd {
  return name === "resultBytes" ? { kind: "limit", limit: name, allowed, seen } : { kind: "crashed", detail: message };
}

async function toResultEnd(body: Uint8Array): Promise<EngineEnd> {
  const json = isUtf8(body) ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(body) : null;
  if (json !== null && (await isJson(json))) return { kind: "value", json };
  return { kind: "crashed", detail: "The result that the sandbox sent is not JSON." };
}

function toException(
  { type, message, line, column, traceback }: CellError,
  code: string,
): Omit<Extract<EngineEnd, { kind: "exception" }>, "kind"> {
  // Without a line of the script, the exception was raised in the worker while it converted the result: its traceback does not help.
  if (line === undefined) return { type, message };
  return { type, message, line, column, sourceLine: code.split(/\r\n|\r|\n/)[line - 1], traceback };
}

function outOfMemory({ memoryBytes }: ExecuteLimits): EngineEnd {
  return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
}
