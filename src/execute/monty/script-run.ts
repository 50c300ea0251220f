import { createScriptClock, type ScriptClock } from "../create-script-clock.ts";
import { createToolCalls, SPARE_CALLS, type ToolCalls } from "../create-tool-calls.ts";
import { maxParamsBytes, type EngineEnd, type EngineOutcome, type Script, type ToolReply } from "../engine.ts";
import { readDone, toRepliesFrame, toRunFrame, type ChildFrame, type FrameBytes, type ReplyItem } from "./child-frames.ts";

export interface ScriptRunOptions {
  readonly script: Script;
  readonly send: (frame: FrameBytes) => void;
  /** Kills the child. */
  readonly stop: () => void;
}

/** Replies are sent together up to this size, because the child holds all of them in memory. */
const MAX_BATCH_BYTES = 1024 * 1024;

/** The host's side of one script in a child: its time limits, tool calls and printed output. The constructor sends the script. */
export class ScriptRun {
  readonly maxBodyBytes: number;
  readonly outcome: Promise<EngineOutcome>;
  /** Whether the child was killed. It may not be dead yet. */
  isKilled = false;
  readonly #options: ScriptRunOptions;
  readonly #settled = Promise.withResolvers<EngineOutcome>();
  readonly #started = performance.now();
  readonly #unsentReplies: ReplyItem[] = [];
  readonly #calls: ToolCalls;
  readonly #clock: ScriptClock;
  readonly #prints = { head: "", tail: "", omittedBytes: 0 };
  #isSendScheduled = false;
  #isWaiting = false;
  #isOver = false;

  constructor(options: ScriptRunOptions) {
    const { code, limits, signal, callTool } = options.script;
    const { memoryBytes, printBytes, resultBytes, totalMs } = limits;
    this.#options = options;
    this.outcome = this.#settled.promise;
    this.maxBodyBytes = resultBytes + 1024;
    this.#calls = createToolCalls({ callTool, limits, onReply: (id, reply) => this.#addReply(id, reply) });
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    // The host enforces the time limits, because Monty's own clock does not stop while a script waits for tools. Monty's limit only matters if the host dies.
    const childLimits = { memoryBytes, printBytes, resultBytes, paramsBytes: maxParamsBytes, maxDurationSecs: totalMs / 1000 };
    options.send(toRunFrame({ limits: childLimits, concurrent: code.includes("gather") }, code));
    this.#clock = createScriptClock({ limits, onOver: (limit) => this.#endAtTimeLimit(limit) });
  }

  /** Handles a frame. Returns what is wrong with it if the child broke the protocol, else null. */
  receive(frame: ChildFrame): string | null {
    if (this.isKilled) return null; // ignore frames sent before the child died
    if (this.#isOver) return `a frame ${frame.type} after its end`;
    if (this.#isWaiting) return `a frame ${frame.type} while waiting for replies`;
    const { limits } = this.#options.script;
    switch (frame.type) {
      case "call":
        return this.#startCall(frame);
      case "wait":
        if (this.#openCalls === 0) return "a frame wait without pending calls";
        this.#clock.pause();
        this.#isWaiting = true;
        this.#sendReplies();
        return null;
      case "print":
        this.#prints.head = (this.#prints.head + frame.text).slice(0, limits.printBytes);
        return null;
      case "tail":
        this.#prints.tail = frame.text.slice(-limits.printBytes);
        this.#prints.omittedBytes = frame.omittedBytes;
        return null;
      case "done": {
        const done = readDone(frame, limits);
        if (done === null) return "an invalid frame done";
        const unawaited = done.unawaited.map((id) => this.#calls.nameOf(id - 1) ?? "");
        this.finish(done.end, unawaited, done.warnings);
        return null;
      }
      case "ready":
        return "a frame ready out of place";
    }
  }

  /** Running calls, and ended calls whose reply was not sent yet. */
  get #openCalls(): number {
    return this.#calls.open + this.#unsentReplies.length;
  }

  #startCall({ id, name, params }: Extract<ChildFrame, { type: "call" }>): string | null {
    const { toolCalls } = this.#options.script.limits;
    if (id !== this.#calls.count + 1) return "a call with an id out of order";
    if (this.#openCalls >= toolCalls + SPARE_CALLS) this.#kill({ kind: "limit", limit: "toolCalls", allowed: toolCalls, seen: id });
    else this.#calls.start({ id, name, paramsJson: params });
    return null;
  }

  /** Ends the script. Also called when the child died. */
  finish(end: EngineEnd, unawaited: readonly string[] = [], warnings: readonly string[] = []): void {
    if (this.#isOver) return;
    this.#close(new Error("The script has ended."));
    const { head, tail, omittedBytes } = this.#prints;
    this.#settled.resolve({
      end,
      prints: head + tail,
      printsOmittedBytes: omittedBytes,
      unawaited,
      toolCalls: this.#calls.count,
      executionMs: this.#clock.executionMs(),
      warnings,
    });
  }

  #kill(end: EngineEnd): void {
    this.isKilled = true;
    this.finish(end);
    this.#options.stop();
  }

  #endAtTimeLimit(limit: "executionMs" | "totalMs"): void {
    if (this.#isOver) return;
    const seen = limit === "totalMs" ? performance.now() - this.#started : this.#clock.executionMs();
    this.#kill({ kind: "limit", limit, allowed: this.#options.script.limits[limit], seen: Math.round(seen) });
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#options.script.signal?.reason;
    this.isKilled = true;
    this.#close(reason);
    this.#options.stop();
    this.#settled.reject(reason);
  };

  #close(reason: unknown): void {
    this.#isOver = true;
    this.#clock[Symbol.dispose]();
    this.#options.script.signal?.removeEventListener("abort", this.#onAbort);
    this.#calls.abandon(reason);
  }

  /** Sends the replies of calls that end in the same tick together. */
  #addReply(id: number, reply: ToolReply): void {
    this.#unsentReplies.push({ id, ok: reply.ok, text: reply.ok ? reply.json : reply.message });
    if (this.#calls.open === 0) this.#sendReplies();
    else if (!this.#isSendScheduled) {
      this.#isSendScheduled = true;
      setImmediate(() => {
        this.#isSendScheduled = false;
        this.#sendReplies();
      });
    }
  }

  #sendReplies(): void {
    const replies = this.#unsentReplies;
    if (!this.#isWaiting || this.#isOver || replies.length === 0) return;
    let count = 0;
    for (let bytes = 0; count < replies.length && bytes < MAX_BATCH_BYTES; count += 1) bytes += replies[count]!.text.length;
    this.#isWaiting = false;
    this.#options.send(toRepliesFrame(replies.splice(0, count)));
    this.#clock.resume();
  }
}
