/**
 * The program of a child process: runs scripts in Monty, one at a time, for the host at the other end of descriptor 3. It is handed to Node as text with
 * the files of `child/` in it (`readChildProgram`), so it imports nothing else of ours.
 *
 * The host writes only when it was asked to: after `ready` or `done` a `run`, after `wait` a `replies`. So neither side can block the other for good.
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
import { openBlockingFrames } from "./child/blocking-frames.ts";
import { createPrints } from "./child/create-prints.ts";
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
  /** Whether the script can have several tasks; if not, the first poll may block. */
  readonly concurrent: boolean;
}
interface RepliesHeader {
  readonly type: "replies";
  /** Id, whether it is a value, and how many bytes of the body are its own. */
  readonly items: readonly (readonly [id: number, ok: boolean, bytes: number])[];
}
type Step = MontySnapshot | MontyNameLookup | MontyComplete;
type Reply = { readonly ok: boolean; readonly text: string };

/** How often a call is polled without any news before the script counts as waiting: tasks that were woken need some turns to go on. */
const POLLS_BEFORE_WAIT = 3;
const FLUSH_CALLS = 100;
const MAX_NAME_CHARACTERS = 1_000;
/** Of an exception: what the host reads of it at most. */
const MAX_MESSAGE_CHARACTERS = 256 * 1024;

const { flush, queue, receive, send } = openBlockingFrames(3);
send({ type: "ready" });
for (let frame = receive(); frame !== null; frame = receive()) runScript(frame.header as RunHeader, frame.body.toString("utf8"));

function runScript({ limits, concurrent }: RunHeader, code: string): void {
  const prints = createPrints(limits.printBytes, send);
  const calls = createCalls({ concurrent, paramsBytes: limits.paramsBytes, beforeWait: () => prints.flush() });
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

interface CallsOptions {
  readonly concurrent: boolean;
  readonly paramsBytes: number;
  readonly beforeWait: () => void;
}

function createCalls({ concurrent, paramsBytes, beforeWait }: CallsOptions) {
  const replies = new Map<number, Reply>();
  const open = new Set<number>();
  const polls = new Map<number, number>();
  const awaited = new Set<number>();
  let lastId = 0;

  function start(step: MontySnapshot): Step {
    const [name, params] = step.args as unknown[];
    if (typeof name !== "string" || typeof params !== "string") return refuse(step, "TypeError", "name must be a str");
    if (name.length > MAX_NAME_CHARACTERS) return refuse(step, "ValueError", `name has more than ${MAX_NAME_CHARACTERS} characters`);
    const bytes = Buffer.byteLength(params);
    if (bytes > paramsBytes) return refuse(step, "ValueError", `params has ${bytes} bytes of JSON or more, ${paramsBytes} are allowed`);
    lastId += 1;
    open.add(lastId);
    polls.clear();
    // It leaves when the script next polls: mostly at once, and then in one write with what follows.
    queue({ type: "call", id: lastId, name }, params);
    if (lastId % FLUSH_CALLS === 0) flush();
    return step.resume({ returnValue: lastId });
  }

  function refuse(step: MontySnapshot, type: string, message: string): Step {
    return step.resume({ exception: { type, message: `call_tool(name, params): ${message}` } });
  }

  function poll(step: MontySnapshot): Step {
    const id = step.args[0] as number;
    awaited.add(id);
    const reply = take(id) ?? (isEveryoneWaiting(id) ? (wait(), take(id)) : undefined);
    if (reply === undefined) {
      flush();
      return step.resume({ returnValue: null });
    }
    return step.resume(reply.ok ? { returnValue: reply.text } : { exception: { type: "RuntimeError", message: reply.text } });
  }

  function take(id: number): Reply | undefined {
    const reply = replies.get(id);
    if (reply === undefined) return undefined;
    replies.delete(id);
    open.delete(id);
    polls.clear();
    return reply;
  }

  function isEveryoneWaiting(id: number): boolean {
    if (!concurrent) return true;
    const seen = (polls.get(id) ?? 0) + 1;
    polls.set(id, seen);
    return seen >= POLLS_BEFORE_WAIT;
  }

  function wait(): void {
    polls.clear();
    if (replies.size > 0) return; // some other task has news and has only not been reached yet
    beforeWait();
    send({ type: "wait" });
    const frame = receive();
    if (frame === null) process.exit(0);
    let at = 0;
    for (const [id, ok, bytes] of (frame.header as RepliesHeader).items) {
      replies.set(id, { ok, text: frame.body.toString("utf8", at, at + bytes) });
      at += bytes;
    }
  }

  /** Calls whose result the script never took. A script that failed had no time to: of it, those that it never waited for. */
  function unawaited(finished: boolean): number[] {
    return [...open].filter((id) => finished || !awaited.has(id)).slice(0, 1000);
  }

  return { start, poll, unawaited };
}

function toSyntaxEnd(error: unknown): Record<string, unknown> {
  if (!(error instanceof MontyRuntimeError) && !(error instanceof MontySyntaxError)) throw error;
  const { typeName, message } = error.exception;
  // The package's class for syntax errors does not hand out the place; the native error in it has it.
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
