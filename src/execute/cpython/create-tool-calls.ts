import type { CallTool, ExecuteLimits, ToolReply } from "../contract.ts";

export interface ToolCalls {
  /** Starts a call, or lets it wait for its turn. False when too many wait, or all were given up: nothing was started. */
  start(call: { readonly id: number; readonly name: string; readonly paramsJson: string }): boolean;
  /** Resolves when what waits is little enough to take more; until then nothing should be read from the sandbox. */
  room(): Promise<void>;
  readonly count: number;
  nameOf(id: number): string | undefined;
  /** Gives up what is under way; no reply comes any more. */
  abandon(reason: unknown): void;
}

export interface ToolCallsOptions {
  readonly callTool: CallTool;
  readonly limits: Pick<ExecuteLimits, "toolCalls" | "concurrentToolCalls">;
  readonly onReply: (id: number, reply: ToolReply) => void;
  /** Called when the first of some calls begins to be waited for, and when none is any more. */
  readonly onWaiting: (waiting: boolean) => void;
}

/** Calls over the limit are refused above, one by one, where a script can catch it. This many may wait for their refusal. */
const SPARE_CALLS = 1_000;
/** Params that the host keeps for calls that are not over; who sends more waits. */
const MAX_PENDING_CHARACTERS = 32 * 1024 * 1024;

/** The calls of one script: counted, numbered, and at most so many at once. */
export function createToolCalls({ callTool, limits, onReply, onWaiting }: ToolCallsOptions): ToolCalls {
  const names: string[] = [];
  const queue: (() => Promise<void>)[] = [];
  const ending = new AbortController();
  let running = 0;
  let pending = 0;
  let waiting: PromiseWithResolvers<void> | null = null;

  function start({ id, name, paramsJson }: Parameters<ToolCalls["start"]>[0]): boolean {
    if (ending.signal.aborted || running + queue.length >= limits.toolCalls + SPARE_CALLS) return false;
    names.push(name);
    pending += paramsJson.length;
    if (running + queue.length === 0) onWaiting(true);
    queue.push(async () => {
      const reply = await callTool({ name, paramsJson, signal: ending.signal }).catch(toReply);
      pending -= paramsJson.length;
      letIn();
      if (!ending.signal.aborted) onReply(id, reply);
    });
    next();
    return true;
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

  function next(): void {
    if (ending.signal.aborted || running >= limits.concurrentToolCalls) return;
    const run = queue.shift();
    if (run === undefined) return;
    running += 1;
    void run().finally(() => {
      running -= 1;
      if (ending.signal.aborted) return;
      if (running + queue.length === 0) onWaiting(false);
      next();
    });
  }

  return {
    start,
    room,
    get count() {
      return names.length;
    },
    nameOf: (id) => names[id],
    abandon(reason) {
      queue.length = 0;
      ending.abort(reason);
      letIn();
    },
  };
}

/** A CallTool does not reject; where one does all the same, the script is told. */
function toReply(error: unknown): ToolReply {
  return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${String(error)}` };
}
