import { createLimiter } from "../concurrency/create-limiter.ts";
import type { CallTool, ExecuteLimits, ToolReply } from "./engine.ts";

interface StartedCall {
  readonly id: number;
  readonly name: string;
  readonly paramsJson: string;
}

export interface ToolCalls {
  /** Starts or queues a call. Returns false if the queue is full or the calls were abandoned. */
  start(call: StartedCall): boolean;
  /** Resolves when there is room for the parameters of more calls. Do not read from the sandbox before. */
  room(): Promise<void>;
  /** Calls started or queued so far. */
  readonly count: number;
  /** Calls that have not ended. */
  readonly open: number;
  nameOf(id: number): string | undefined;
  /** Aborts all pending calls. `onReply` is not called any more. */
  abandon(reason: unknown): void;
}

export interface ToolCallsOptions {
  readonly callTool: CallTool;
  readonly limits: Pick<ExecuteLimits, "toolCalls" | "concurrentToolCalls">;
  readonly onReply: (id: number, reply: ToolReply) => void;
  /** Called with true when the number of pending calls leaves 0, and with false when it is 0 again. */
  readonly onWaiting?: (waiting: boolean) => void;
}

/** `callTool` refuses each call over the limit, so that the script can catch it. At most this many extra calls may be pending. */
export const SPARE_CALLS = 1_000;
/** Maximum total length of the parameters of pending calls; the sandbox is not read while they exceed it. */
const MAX_PENDING_CHARACTERS = 32 * 1024 * 1024;

/** Runs the tool calls of one script: numbers them and limits how many run at once. */
export function createToolCalls({ callTool, limits, onReply, onWaiting }: ToolCallsOptions): ToolCalls {
  const names: string[] = [];
  const slots = createLimiter({ places: limits.concurrentToolCalls });
  const ending = new AbortController();
  let open = 0;
  let pendingCharacters = 0;
  let roomWaiter: PromiseWithResolvers<void> | null = null;

  function start(call: StartedCall): boolean {
    if (ending.signal.aborted || open >= limits.toolCalls + SPARE_CALLS) return false;
    names.push(call.name);
    open += 1;
    pendingCharacters += call.paramsJson.length;
    if (open === 1) onWaiting?.(true);
    slots.run(() => run(call), ending.signal).catch(() => {}); // abandoned before it started
    return true;
  }

  async function run({ id, name, paramsJson }: StartedCall): Promise<void> {
    const reply = await callTool({ name, paramsJson, signal: ending.signal }).catch(toReply);
    open -= 1;
    pendingCharacters -= paramsJson.length;
    releaseWaiter();
    if (ending.signal.aborted) return;
    onReply(id, reply);
    if (open === 0) onWaiting?.(false);
  }

  function releaseWaiter(): void {
    if (pendingCharacters > MAX_PENDING_CHARACTERS && !ending.signal.aborted) return;
    roomWaiter?.resolve();
    roomWaiter = null;
  }

  async function room(): Promise<void> {
    if (pendingCharacters <= MAX_PENDING_CHARACTERS || ending.signal.aborted) return;
    roomWaiter ??= Promise.withResolvers();
    await roomWaiter.promise;
  }

  return {
    start,
    room,
    get count() {
      return names.length;
    },
    get open() {
      return open;
    },
    nameOf: (id) => names[id],
    abandon(reason) {
      ending.abort(reason);
      releaseWaiter();
    },
  };
}

/** A `CallTool` must not reject. If it does, the script gets the error. */
function toReply(error: unknown): ToolReply {
  return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}
