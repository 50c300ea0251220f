import { createScriptClock, type ScriptClock } from "../create-script-clock.ts";
import { createToolCalls, SPARE_CALLS, type ToolCalls } from "../create-tool-calls.ts";
import { maxParamsBytes, type EngineEnd, type EngineOutcome, type Script, type ToolReply } from "../engine.ts";
import { toRepliesFrame, toRunFrame, type ChildFrame, type FrameBytes, type ReplyItem } from "./child-frames.ts";
import { montyPrelude } from "./prelude.ts";
import { toEngineEnd } from "./to-engine-end.ts";

export interface ScriptRunOptions {
  readonly script: Script;
  readonly send: (frame: FrameBytes) => void;
  /** Kills the child. */
  readonly stop: () => void;
}

/** More than one result is sent at once only while they are small together, because the child holds them all. */
const REPLY_BYTES = 1024 * 1024;

/** One script in a child, seen from the host: its clocks, its calls, its prints. Creating it sends the script. */
export class ScriptRun {
  readonly maxBodyBytes: number;
  readonly outcome: Promise<EngineOutcome>;
  /** Whether the child was told to end, so that its death is still to come. */
  isKilled = false;
  readonly #options: ScriptRunOptions;
  readonly #settled = Promise.withResolvers<EngineOutcome>();
  readonly #started = performance.now();
  readonly #finished: ReplyItem[] = [];
  readonly #calls: ToolCalls;
  readonly #clock: ScriptClock;
  readonly #prints = { head: "", tail: "", omittedBytes: 0 };
  #isScheduled = false;
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
    // The host keeps the script's time, because Monty's clock also runs while it waits. It is the last resort for a child without a host.
    const childLimits = { memoryBytes, printBytes, resultBytes, paramsBytes: maxParamsBytes, maxDurationSecs: totalMs / 1000 };
    options.send(toRunFrame({ limits: childLimits, concurrent: code.includes("gather") }, montyPrelude + code));
    this.#clock = createScriptClock({ limits, onOver: (limit) => this.#endAtTimeLimit(limit) });
  }

  /** What is wrong with the frame; null when it is in its place. */
  receive(frame: ChildFrame): string | null {
    if (this.isKilled) return null; // what it says until it is dead does not count
    if (this.#isOver) return `a frame ${frame.type} after its end`;
    if (this.#isWaiting) return `a frame ${frame.type} while it said that it waits`;
    const { limits } = this.#options.script;
    switch (frame.type) {
      case "call":
        return this.#startCall(frame);
      case "wait":
        if (this.#openCalls === 0) return "that it waits, for no call";
        this.#clock.pause();
        this.#isWaiting = true;
        this.#deliver();
        return null;
      case "print":
        this.#prints.head = (this.#prints.head + frame.text).slice(0, limits.printBytes);
        return null;
      case "tail":
        this.#prints.tail = frame.text.slice(-limits.printBytes);
        this.#prints.omittedBytes = frame.omittedBytes;
        return null;
      case "done": {
        const done = toEngineEnd(frame.header, frame.body, limits);
        if (done === null) return "an end that cannot be read";
        const unawaited = done.unawaited.map((id) => this.#calls.nameOf(id - 1) ?? "");
        this.#finish(done.end, unawaited, done.warnings);
        return null;
      }
      case "ready":
        return "a frame ready out of place";
    }
  }

  /** The child is gone. */
  die(end: EngineEnd): void {
    this.#finish(end);
  }

  /** Calls that run, and those whose reply was not sent yet. */
  get #openCalls(): number {
    return this.#calls.open + this.#finished.length;
  }

  #startCall({ id, name, params }: Extract<ChildFrame, { type: "call" }>): string | null {
    const { toolCalls } = this.#options.script.limits;
    if (id !== this.#calls.count + 1) return "a call with a number out of order";
    if (this.#openCalls >= toolCalls + SPARE_CALLS) this.#kill({ kind: "limit", limit: "toolCalls", allowed: toolCalls, seen: id });
    else this.#calls.start({ id, name, paramsJson: params });
    return null;
  }

  #finish(end: EngineEnd, unawaited: readonly string[] = [], warnings: readonly string[] = []): void {
    if (this.#isOver) return;
    this.#close(new Error("The script is over."));
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
    this.#finish(end);
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

  /** Tools that end in the same tick travel together. */
  #addReply(id: number, reply: ToolReply): void {
    this.#finished.push({ id, ok: reply.ok, text: reply.ok ? reply.json : reply.message });
    if (this.#calls.open === 0) this.#deliver();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#deliver();
      });
    }
  }

  #deliver(): void {
    const finished = this.#finished;
    if (!this.#isWaiting || this.#isOver || finished.length === 0) return;
    let count = 0;
    for (let bytes = 0; count < finished.length && bytes < REPLY_BYTES; count += 1) bytes += finished[count]!.text.length;
    this.#isWaiting = false;
    this.#options.send(toRepliesFrame(finished.splice(0, count)));
    this.#clock.resume();
  }
}
