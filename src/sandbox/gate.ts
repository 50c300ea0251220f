import { NoSandboxError } from "../errors/sluice-error.ts";
import { waitInLine } from "../waiting/wait-in-line.ts";

/** Bounds all sandboxes of a runtime together, of every driver, pooled ones included. */
export interface Gate {
  readonly places: number;
  readonly taken: number;
  readonly waiting: number;
  /** Waits in line until a place is free; rejects when the queue's deadline passes. The returned function gives the place back, once. */
  enter(signal?: AbortSignal): Promise<() => void>;
  /** A place if one is free and nobody waits for it, else null. */
  tryEnter(): (() => void) | null;
  /**
   * For who holds places that can be given up: asked when somebody begins to wait, one holder after the other, until one says that it gives up a place.
   * The returned function ends it.
   */
  onWaiting(giveUp: () => boolean): () => void;
}

export function createGate({ places, deadlineMs }: { places: number; deadlineMs: number }): Gate {
  const line: (() => void)[] = [];
  const holders = new Set<() => boolean>();
  let taken = 0;

  function place(): () => void {
    taken += 1;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      taken -= 1;
      line.shift()?.();
    };
  }

  async function enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (taken < places && line.length === 0) return place();
    const admitted = waitInLine<() => void, () => void>(line, (admit) => () => admit(place()), {
      deadlineMs,
      late: () => queueTooLong(places, deadlineMs),
      signal,
    });
    for (const giveUp of holders) if (giveUp()) break;
    return await admitted;
  }

  return {
    places,
    get taken() {
      return taken;
    },
    get waiting() {
      return line.length;
    },
    enter,
    tryEnter: () => (taken < places && line.length === 0 ? place() : null),
    onWaiting(giveUp) {
      holders.add(giveUp);
      return () => void holders.delete(giveUp);
    },
  };
}

function queueTooLong(places: number, deadlineMs: number): NoSandboxError {
  return new NoSandboxError({
    code: "SANDBOX_QUEUE_TIMEOUT",
    message: `No sandbox became free within ${deadlineMs / 1000} s: all ${places} are in use.`,
    hint: "Try again later, or raise maxSandboxes if the machine has the memory.",
    details: { maxSandboxes: places, deadlineMs },
  });
}
