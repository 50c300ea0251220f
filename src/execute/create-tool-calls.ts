import { createLimiter } from "../concurrency/create-limiter.ts";
import type { CallTool, ExecuteLimits, ToolReply } from "./engine.ts";

interface StartedCall {
  readonly id: number;
  readonly name: string;
  readonly paramsJson: string;
}

export interface ToolCalls {
  /** Starts a call, or lets it wait for its turn. False when too many wait, or all were given up: nothing was started. */
  start(call: StartedCall): boolean;
  /** Resolves when what waits is little enough to take more; until then nothing should be read from the sandbox. */
  room(): Promise<void>;
  readonly count: number;
  /** Calls that are not over yet. */
  readonly open: number;
  nameOf(id: number): string | undefined;
  /** Gives up what is under way; no reply comes any more. */
  abandon(reason: unknown): void;
}

export interface ToolCallsOptions {
  readonly callTool: CallTool;
  readonly limits: Pick<ExecuteLimits, "toolCalls" | "concurrentToolCalls">;
  readonly onReply: (id: number, reply: ToolReply) => void;
  /** Called when the first of some calls begins to be waited for, and when none is any more. */
  readonly onWaiting?: (waiting: boolean) => void;
}

/** Calls over the limit are refused above, one by one, where a script can catch it. This many may wait for their refusal. */
export const SPARE_CALLS = 1_000;
/** Params that the host keeps for calls that are not over; who sends more waits. */
const MAX_PENDING_CHARACTERS = 32 * 1024 * 1024;

/** The calls of one script: counted, numbered, and at most so many at once. */
export function createToolCalls({ callTool, limits, onReply, onWaiting }: ToolCallsOptions): ToolCalls {
  const names: string[] = [];
  const slots = createLimiter({ places: limits.concurrentToolCalls });
  const ending = new AbortController();
  let open = 0;
  let pending = 0;
  let waiting: PromiseWithResolvers<void> | null = null;

  function start(call: StartedCall): boolean {
    if (ending.signal.aborted || open >= limits.toolCalls + SPARE_CALLS) return false;
    names.push(call.name);
    open += 1;
    pending += call.paramsJson.length;
    if (open === 1) onWaiting?.(true);
    slots.run(() => answer(call), ending.signal).catch(() => {}); // given up before its turn
    return true;
  }

  async function answer({ id, name, paramsJson }: StartedCall): Promise<void> {
    const reply = await callTool({ name, paramsJson, signal: ending.signal }).catch(toReply);
    open -= 1;
    pending -= paramsJson.length;
    letIn();
    if (ending.signal.aborted) return;
    onReply(id, reply);
    if (open === 0) onWaiting?.(false);
  }

  function letIn(): void {
    if (pending > MAX_PENDING_CHARACTERS && !ending.signal.aborted) return;
    waiting?.resolve();
    waiting = null;
  }

  async function room(): Promise<void> {
    if (pending <= MAX_PENDING_CHARACTERS || ending.signal.aborted) return;
    waiting ??= Promise.withResolvers();
    await waiting.promise;
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
      letIn();
    },
  };
}

/** A CallTool does not reject; if one does, the script gets its error. */
function toReply(error: unknown): ToolReply {
  return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
}
