import { SandboxLostError } from "../../errors/sluice-error.ts";
import type { Lease, Usage } from "../../sandbox/contract.ts";
import { outOfPlace } from "../../sandbox/out-of-place.ts";
import { maxParamsBytes, type EngineOutcome, type Script, type ToolReply } from "../contract.ts";
import { createPrintText, type PrintText } from "./create-print-text.ts";
import { createScriptClock } from "./create-script-clock.ts";
import { createToolCalls, type ToolCalls } from "./create-tool-calls.ts";
import { judgeScript, type ScriptStop, type SeenEnd } from "./judge-script.ts";
import { scriptFrame, scriptNumber } from "./script-frames.ts";

/** How long the worker gets to end a script, and to send what it has printed, before the whole sandbox is ended. */
const INTERRUPT_GRACE_MS = 1_000;
/** Over the limit of prints, for the two halves that the worker keeps; past it the sandbox does not cut as it must. */
const OUTPUT_SLACK_BYTES = 64 * 1024;
/** A frame to the worker, prefix and header included, has at most 64 MB. */
const MAX_REPLY_BYTES = 60 * 1024 * 1024;

/** Runs a script in a sandbox that has run nothing yet. The sandbox is the caller's to close, and can run nothing else. Rejects only with `signal.reason`. */
export async function runScript({ lease, script }: { lease: Lease; script: Script }): Promise<EngineOutcome> {
  const { limits, signal } = script;
  signal?.throwIfAborted();
  const before = await lease.usage().catch((): Usage => ({ peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 }));
  const prints = createPrintText();
  const started = performance.now();
  let stop: ScriptStop | null = null;
  let grace: NodeJS.Timeout | undefined;

  const end = (why: ScriptStop): void => {
    if (stop !== null) return;
    stop = why;
    abandon();
    if (why === "aborted") return void lease.close();
    grace = setTimeout(() => void lease.close(), INTERRUPT_GRACE_MS);
    lease.channel.send({ type: "interrupt", cell: scriptNumber }).catch(() => {}); // a sandbox that is gone says so by itself
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
    const seen = await converse({ lease, script, prints, calls, onTooMany: () => end("toolCalls") });
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
      prints: prints.finish(),
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

interface Conversation {
  readonly lease: Lease;
  readonly script: Script;
  readonly prints: PrintText;
  readonly calls: ToolCalls;
  /** The script has begun more calls than can wait. */
  readonly onTooMany: () => void;
}

/** Sends the script and takes its frames until it is over. */
async function converse({ lease, script, prints, calls, onTooMany }: Conversation): Promise<SeenEnd> {
  const { printBytes, resultBytes, memoryBytes } = script.limits;
  const limits = { stdoutBytes: printBytes, stderrBytes: 0, resultBytes, memoryBytes, paramsBytes: maxParamsBytes };
  try {
    await lease.channel.send({ type: "script", cell: scriptNumber, rollback: "none", limits }, Buffer.from(script.code, "utf8"));
    let refused = false;
    for (let next = 0; ;) {
      const raw = await lease.channel.receive();
      if (raw === null) return { lost: "it closed its channel" };
      const parsed = scriptFrame.safeParse(raw.header);
      if (!parsed.success) throw outOfPlace(`a frame of type ${JSON.stringify(raw.header.type).slice(0, 60)} that does not belong there`);
      const frame = parsed.data;
      if (frame.type === "done" || frame.type === "ended") return { frame, body: raw.body };
      if (frame.type === "lost") return { lost: frame.detail };
      if (frame.type === "output") {
        if (frame.stream === "stdout") prints.add(raw.body, frame.omittedBytes ?? 0);
        if (prints.receivedBytes > printBytes + OUTPUT_SLACK_BYTES) throw outOfPlace("more output than was allowed");
      } else {
        if (frame.id !== next) throw outOfPlace(`call ${frame.id} where call ${next} is next`);
        next += 1;
        refused ||= !calls.start({ id: frame.id, name: frame.name.toWellFormed(), paramsJson: toParamsJson(raw.body) });
        if (refused) onTooMany();
        await calls.room();
      }
    }
  } catch (error) {
    if (error instanceof SandboxLostError) return { lost: error.message };
    throw error;
  }
}

/** Whether they are JSON, and a dict, is judged where calls are made, in the same words for both engines. */
function toParamsJson(body: Uint8Array): string {
  if (body.length > maxParamsBytes) throw outOfPlace(`params of ${body.length} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw outOfPlace("params that are no text");
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
