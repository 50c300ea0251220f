import type { StoredEvent } from "../../history/contract.ts";
import type { LiveTurn } from "../turns/create-live-turn.ts";

export interface FollowOptions<Chunk> {
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** The events: those of a turn that runs, or those that were. */
  readonly open: (signal: AbortSignal) => ReturnType<LiveTurn["follow"]> | ArrayIterator<StoredEvent>;
  readonly begin: readonly Chunk[];
  readonly toChunks: (event: StoredEvent) => readonly Chunk[];
  /** Sent when nothing else is for so long. */
  readonly stillHere?: { readonly everyMs: number; readonly chunk: Chunk };
}

/** Events as they come, for the body of an answer. The next is taken when the client has taken the last; one that left is a listener no more. */
export function followStream<Chunk>({ signal, open, begin, toChunks, stillHere }: FollowOptions<Chunk>): ReadableStream<Chunk> {
  const gone = new AbortController();
  const events = open(AbortSignal.any([signal, gone.signal]));
  let hasBegun = false;
  let alive: NodeJS.Timeout | undefined;
  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        if (!hasBegun) {
          // Not before somebody reads: the body of a HEAD is dropped without a word.
          hasBegun = true;
          if (stillHere !== undefined) alive = setInterval(() => controller.enqueue(stillHere.chunk), stillHere.everyMs).unref();
          for (const chunk of begin) controller.enqueue(chunk);
          return;
        }
        const { done, value } = await events.next();
        if (done !== true) {
          for (const chunk of toChunks(value)) controller.enqueue(chunk);
          return;
        }
        clearInterval(alive);
        controller.close();
      },
      async cancel() {
        clearInterval(alive);
        gone.abort();
        await events.return?.(); // a listener that was between two events is none any more, either
      },
    },
    { highWaterMark: 0 },
  );
}
