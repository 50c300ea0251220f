/**
 * The program of a child process: runs scripts in Monty, one at a time, for the host at the other end of descriptor 3. Node gets it as text with the
 * modules that it imports embedded (`readChildProgram`).
 *
 * The host writes only when the child expects it: `run` after `ready` or `done`, `replies` after `wait`. So the two sides cannot deadlock.
 */
import {
  Monty,
  MontyComplete,
  MontyNameLookup,
  MontyRuntimeError,
  MontySyntaxError,
  type Frame,
  type MontySnapshot,
} from "@pydantic/monty";
import { openBlockingFrames } from "../../concurrency/blocking-frames.ts";
import { toResultJson } from "./child/to-result-json.ts";

interface RunHeader {
  readonly type: "run";
  readonly limits: {
    readonly memoryBytes: number;
    readonly maxDurationSecs: number;
    readonly printBytes: number;
    readonly resultBytes: number;
    readonly paramsBytes: number;
  };
  /** Whether the script may run several tasks. If not, the first poll of a call can block. */
  readonly concurrent: boolean;
}
interface RepliesHeader {
  readonly type: "replies";
  /** The id of the call, whether it succeeded, and how many bytes of the body are its reply. */
  readonly items: readonly (readonly [id: number, ok: boolean, bytes: number])[];
}
type Step = MontySnapshot | MontyNameLookup | MontyComplete;
type Reply = { readonly ok: boolean; readonly text: string };

/** A script counts as waiting after this many polls of a call without a new reply: tasks that were resumed need some turns to continue. */
const POLLS_BEFORE_WAIT = 3;
/** Queued calls are written at the latest after this many. */
const CALLS_PER_WRITE = 100;
const PRINT_INTERVAL_MS = 50;
const MAX_NAME_CHARACTERS = 1_000;
/** Longest exception message that is sent to the host. */
const MAX_MESSAGE_CHARACTERS = 256 * 1024;

const { flush, queue, receive, send } = openBlockingFrames(3);

function runScript({ limits, concurrent }: RunHeader, code: string): void {
  const prints = createPrints(limits.printBytes);
  const calls = new ScriptCalls({ concurrent, paramsBytes: limits.paramsBytes, beforeWait: () => prints.flush() });
  try {
    let monty: Monty;
    try {
      monty = new Monty(code, { scriptName: "script.py" });
    } catch (error) {
      finish(toSyntaxEnd(error));
      return;
    }
    const value = drive(monty);
    const warnings = new Set<string>();
    const json = toResultJson(value, limits.resultBytes, warnings);
    if (json === null) finish({ status: "limit", limit: "resultBytes" });
    else finish({ status: "value", warnings: [...warnings].slice(0, 20) }, json);
  } catch (error) {
    const [header, body] = toExceptionEnd(error);
    finish(header, body);
  }

  function drive(monty: Monty): unknown {
    const montyLimits = { maxMemory: limits.memoryBytes, maxDurationSecs: limits.maxDurationSecs };
    let step: Step = monty.start({ limits: montyLimits, printCallback: (_stream: string, text: string) => prints.add(text) });
    while (!(step instanceof MontyComplete)) {
      if (step instanceof MontyNameLookup) step = step.resume({});
      else if (step.functionName === "_sluice_poll") step = calls.poll(step);
      else if (step.functionName === "_sluice_call") step = calls.start(step);
      else step = step.resume({ exception: { type: "NameError", message: `name '${step.functionName}' is not defined` } });
    }
    return step.output;
  }

  function finish(header: Record<string, unknown>, body = ""): void {
    prints.flush();
    send({ type: "done", unawaited: calls.unawaited(header["status"] === "value"), ...header }, body);
  }
}

/** Collects printed output. Sends the first half of the limit as it comes, and keeps the last half of everything after it. */
function createPrints(limitBytes: number) {
  const half = Math.floor(limitBytes / 2);
  let head = "";
  let headBytes = 0;
  let tail = "";
  let cutBytes = 0;
  let flushedAt = performance.now();

  function add(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (tail === "" && headBytes + bytes <= half) {
      head += text;
      headBytes += bytes;
    } else {
      tail += text;
      if (tail.length > half * 2) trimTail();
    }
    if (performance.now() - flushedAt > PRINT_INTERVAL_MS) flushPrints();
  }

  function trimTail(): void {
    const bytes = Buffer.from(tail);
    let from = Math.max(0, bytes.length - half);
    while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    cutBytes += from;
    tail = bytes.toString("utf8", from);
  }

  function flushPrints(): void {
    flushedAt = performance.now();
    if (head !== "") send({ type: "print" }, head);
    head = "";
    if (tail === "") return;
    trimTail();
    send({ type: "tail", omittedBytes: cutBytes }, tail);
  }

  return { add, flush: flushPrints };
}

interface ScriptCallsOptions {
  readonly concurrent: boolean;
  readonly paramsBytes: number;
  readonly beforeWait: () => void;
}

/** The tool calls of one script. The prelude starts a call with `_sluice_call` and polls for its reply with `_sluice_poll`. */
class ScriptCalls {
  readonly #options: ScriptCallsOptions;
  /** Replies that the script has not taken yet. */
  readonly #replies = new Map<number, Reply>();
  readonly #open = new Set<number>();
  /** How often each call was polled since the last reply. */
  readonly #polls = new Map<number, number>();
  readonly #awaited = new Set<number>();
  #lastId = 0;

  constructor(options: ScriptCallsOptions) {
    this.#options = options;
  }

  start(step: MontySnapshot): Step {
    const [name, params] = step.args as unknown[];
    const { paramsBytes } = this.#options;
    if (typeof name !== "string" || typeof params !== "string") return refuseCall(step, "TypeError", "name must be a str");
    if (name.length > MAX_NAME_CHARACTERS) return refuseCall(step, "ValueError", `name has more than ${MAX_NAME_CHARACTERS} characters`);
    const bytes = Buffer.byteLength(params);
    if (bytes > paramsBytes) return refuseCall(step, "ValueError", `params has ${bytes} bytes of JSON or more, ${paramsBytes} are allowed`);
    this.#lastId += 1;
    this.#open.add(this.#lastId);
    this.#polls.clear();
    // Sent at the next poll, which usually follows immediately, in the same write as the next frame.
    queue({ type: "call", id: this.#lastId, name }, params);
    if (this.#lastId % CALLS_PER_WRITE === 0) flush();
    return step.resume({ returnValue: this.#lastId });
  }

  poll(step: MontySnapshot): Step {
    const id = step.args[0] as number;
    this.#awaited.add(id);
    if (!this.#replies.has(id) && this.#isScriptWaiting(id)) this.#wait();
    const reply = this.#takeReply(id);
    if (reply === undefined) {
      flush();
      return step.resume({ returnValue: null });
    }
    return step.resume(reply.ok ? { returnValue: reply.text } : { exception: { type: "RuntimeError", message: reply.text } });
  }

  /** Calls whose result the script never took. If the script failed, only calls that it never awaited. */
  unawaited(hasSucceeded: boolean): number[] {
    return [...this.#open].filter((id) => hasSucceeded || !this.#awaited.has(id)).slice(0, 1000);
  }

  #takeReply(id: number): Reply | undefined {
    const reply = this.#replies.get(id);
    if (reply === undefined) return undefined;
    this.#replies.delete(id);
    this.#open.delete(id);
    this.#polls.clear();
    return reply;
  }

  #isScriptWaiting(id: number): boolean {
    if (!this.#options.concurrent) return true;
    const count = (this.#polls.get(id) ?? 0) + 1;
    this.#polls.set(id, count);
    return count >= POLLS_BEFORE_WAIT;
  }

  #wait(): void {
    this.#polls.clear();
    if (this.#replies.size > 0) return; // another task has a reply that it has not polled yet
    this.#options.beforeWait();
    send({ type: "wait" });
    const frame = receive();
    if (frame === null) process.exit(0);
    let at = 0;
    for (const [id, ok, bytes] of (frame.header as RepliesHeader).items) {
      this.#replies.set(id, { ok, text: frame.body.toString("utf8", at, at + bytes) });
      at += bytes;
    }
  }
}

function refuseCall(step: MontySnapshot, type: string, message: string): Step {
  return step.resume({ exception: { type, message: `call_tool(name, params): ${message}` } });
}

function toSyntaxEnd(error: unknown): Record<string, unknown> {
  if (!(error instanceof MontyRuntimeError) && !(error instanceof MontySyntaxError)) throw error;
  const { typeName, message } = error.exception;
  // The package's syntax error class does not expose the place; the native error inside it does.
  const native = error instanceof MontyRuntimeError ? error : (error as unknown as { _native?: { traceback?(): Frame[] } })._native;
  const frame = native?.traceback?.().at(-1);
  const unsupported = typeName === "NotImplementedError" || /not yet supported/.test(message);
  return { status: "syntax", unsupported, message: message.slice(0, 4_000), line: frame?.line, column: frame?.column };
}

function toExceptionEnd(error: unknown): [Record<string, unknown>, string] {
  if (error instanceof RangeError) return [{ status: "exception", exception: "ValueError", frames: [] }, "the result is nested too deeply"];
  if (!(error instanceof MontyRuntimeError))
    return [{ status: "exception", exception: "RuntimeError", frames: [] }, `the interpreter failed: ${String(error)}`];
  const { typeName, message } = error.exception;
  const memory = typeName === "MemoryError" ? /^memory limit exceeded: (\d+) bytes > \d+ bytes$/.exec(message) : null;
  if (memory) return [{ status: "limit", limit: "memoryBytes", seen: Number(memory[1]) }, ""];
  if (typeName === "TimeoutError" && message.startsWith("time limit exceeded: ")) return [{ status: "limit", limit: "totalMs" }, ""];
  const all = error.traceback();
  const frames = (all.length > 40 ? [...all.slice(0, 20), ...all.slice(-20)] : all).map(({ line, column, functionName, sourceLine }) => ({
    line,
    column,
    functionName: functionName?.slice(0, 200) ?? null,
    sourceLine: (sourceLine ?? "").slice(0, 200),
  }));
  return [
    { status: "exception", exception: typeName, frames, omittedFrames: all.length - frames.length },
    message.slice(0, MAX_MESSAGE_CHARACTERS),
  ];
}

// Last, because the class above must be defined before the first script runs.
send({ type: "ready" });
for (let frame = receive(); frame !== null; frame = receive()) runScript(frame.header as RunHeader, frame.body.toString("utf8"));
