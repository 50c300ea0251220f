import { maxParamsBytes, type EngineEnd, type EngineOutcome, type ExecuteLimits, type Script } from "../contract.ts";
import { toRepliesFrame, toRunFrame, type ChildFrame, type FrameBytes, type ReplyItem } from "./child-frames.ts";
import { montyPrelude } from "./prelude.ts";
import { toEngineEnd } from "./to-engine-end.ts";

/** One script in a child, seen from the host: its clocks, its calls, its prints. */
export interface ScriptRun {
  readonly maxBodyBytes: number;
  readonly outcome: Promise<EngineOutcome>;
  /** What is wrong with the frame; null when it is in its place. */
  receive(frame: ChildFrame): string | null;
  /** The child is gone. */
  die(end: EngineEnd): void;
  /** Whether the child was told to end, so that its death is still to come. */
  isKilled(): boolean;
}

export interface ScriptRunOptions {
  readonly script: Script;
  readonly send: (frame: FrameBytes) => void;
  /** Kills the child. */
  readonly stop: () => void;
}

/** Calls that a script may have begun beyond its limit and not awaited: each waits here with its refusal. */
const SPARE_CALLS = 1_000;
/** More than one result is sent at once only while they are small together, because the child holds them all. */
const REPLY_BYTES = 1024 * 1024;

export function createScriptRun({ script, send, stop }: ScriptRunOptions): ScriptRun {
  const { limits, signal } = script;
  const settled = Promise.withResolvers<EngineOutcome>();
  const tools = new AbortController();
  const clock = createClock(limits, onTime);
  const calls = createCallQueue();
  const prints = { head: "", tail: "", omittedBytes: 0 };
  let isWaiting = false;
  let isOver = false;
  let killed = false;

  signal?.addEventListener("abort", onAbort, { once: true });
  send(
    toRunFrame(
      {
        // The host keeps the script's time, because Monty's clock also runs while it waits. It is the last resort for a child without a host.
        limits: { ...pick(limits), paramsBytes: maxParamsBytes, maxDurationSecs: limits.totalMs / 1000 },
        concurrent: script.code.includes("gather"),
      },
      montyPrelude + script.code,
    ),
  );
  clock.start();
  return { maxBodyBytes: limits.resultBytes + 1024, outcome: settled.promise, receive, die, isKilled: () => killed };

  function receive(frame: ChildFrame): string | null {
    if (killed) return null; // what it says until it is dead does not count
    if (isOver) return `a frame ${frame.type} after its end`;
    if (isWaiting) return `a frame ${frame.type} while it said that it waits`;
    switch (frame.type) {
      case "call":
        return calls.add(frame.id, frame.name, frame.params);
      case "wait":
        if (calls.open() === 0) return "that it waits, for no call";
        clock.pause();
        isWaiting = true;
        calls.deliver();
        return null;
      case "print":
        prints.head = (prints.head + frame.text).slice(0, limits.printBytes);
        return null;
      case "tail":
        prints.tail = frame.text.slice(-limits.printBytes);
        prints.omittedBytes = frame.omittedBytes;
        return null;
      case "done": {
        const end = toEngineEnd(frame.header, frame.body, limits);
        if (end === null) return "an end that cannot be read";
        finish(end.end, { unawaited: calls.namesOf(end.unawaited), warnings: end.warnings });
        return null;
      }
      case "ready":
        return "a frame ready out of place";
    }
  }

  function finish(
    end: EngineEnd,
    { unawaited = [], warnings = [] }: { unawaited?: readonly string[]; warnings?: readonly string[] } = {},
  ): void {
    if (isOver) return;
    isOver = true;
    const executionMs = clock.stop();
    signal?.removeEventListener("abort", onAbort);
    tools.abort(new Error("The script is over."));
    const { head, tail, omittedBytes } = prints;
    settled.resolve({
      end,
      prints: head + tail,
      printsOmittedBytes: omittedBytes,
      unawaited,
      toolCalls: calls.count(),
      executionMs,
      warnings,
    });
  }

  function die(end: EngineEnd): void {
    finish(end);
  }

  function endNow(end: EngineEnd): void {
    if (isOver) return;
    killed = true;
    finish(end);
    stop();
  }

  function onTime(limit: "executionMs" | "totalMs", seen: number): void {
    endNow({ kind: "limit", limit, allowed: limits[limit], seen: Math.round(seen) });
  }

  function onAbort(): void {
    if (isOver) return;
    isOver = true;
    killed = true;
    clock.stop();
    tools.abort(signal?.reason);
    stop();
    settled.reject(signal?.reason);
  }

  function createCallQueue() {
    const names = new Map<number, string>();
    const queue: (() => void)[] = [];
    const finished: ReplyItem[] = [];
    let inFlight = 0;
    let scheduled = false;

    function add(id: number, name: string, paramsJson: string): string | null {
      if (id !== names.size + 1) return "a call with a number out of order";
      names.set(id, name);
      if (open() > limits.toolCalls + SPARE_CALLS) {
        endNow({ kind: "limit", limit: "toolCalls", allowed: limits.toolCalls, seen: names.size });
        return null;
      }
      queue.push(() => void call(id, name, paramsJson));
      next();
      return null;
    }

    function next(): void {
      if (isOver) return;
      while (inFlight < limits.concurrentToolCalls && queue.length > 0) queue.shift()!();
    }

    async function call(id: number, name: string, paramsJson: string): Promise<void> {
      inFlight += 1;
      let item: ReplyItem;
      try {
        const reply = await script.callTool({ name, paramsJson, signal: tools.signal });
        item = reply.ok ? { id, ok: true, text: reply.json } : { id, ok: false, text: reply.message };
      } catch (error) {
        item = { id, ok: false, text: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
      }
      inFlight -= 1;
      finished.push(item);
      next();
      // Tools that end in the same tick travel together.
      if (inFlight === 0) deliver();
      else if (!scheduled) {
        scheduled = true;
        setImmediate(() => {
          scheduled = false;
          deliver();
        });
      }
    }

    function deliver(): void {
      if (!isWaiting || isOver || finished.length === 0) return;
      let count = 0;
      for (let bytes = 0; count < finished.length && bytes < REPLY_BYTES; count += 1) bytes += finished[count]!.text.length;
      isWaiting = false;
      send(toRepliesFrame(finished.splice(0, count)));
      clock.start();
    }

    const open = (): number => inFlight + queue.length + finished.length;
    return { add, deliver, open, count: () => names.size, namesOf: (ids: readonly number[]) => ids.map((id) => names.get(id) ?? "") };
  }
}

function pick({ memoryBytes, printBytes, resultBytes }: ExecuteLimits): Pick<ExecuteLimits, "memoryBytes" | "printBytes" | "resultBytes"> {
  return { memoryBytes, printBytes, resultBytes };
}

/** Two clocks: one that always runs, and one that runs only while the script does. */
function createClock(limits: ExecuteLimits, onTime: (limit: "executionMs" | "totalMs", seen: number) => void) {
  const begin = performance.now();
  const total = setTimeout(() => onTime("totalMs", performance.now() - begin), limits.totalMs);
  let spent = 0;
  let since: number | null = null;
  let timer: NodeJS.Timeout | null = null;
  const used = (): number => spent + (since === null ? 0 : performance.now() - since);

  /** The timer is left alone when the script waits, and set again only when it has run out too early: a script may wait a thousand times a second. */
  function start(): void {
    since = performance.now();
    timer ??= setTimeout(look, limits.executionMs - spent);
  }

  function look(): void {
    timer = null;
    if (since === null) return;
    if (used() >= limits.executionMs) onTime("executionMs", used());
    else timer = setTimeout(look, limits.executionMs - used());
  }

  function pause(): void {
    spent = used();
    since = null;
  }

  function stop(): number {
    pause();
    clearTimeout(total);
    if (timer !== null) clearTimeout(timer);
    return spent;
  }

  return { start, pause, stop };
}
