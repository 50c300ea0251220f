import { waitInLine } from "../../waiting/wait-in-line.ts";
import { HttpFailure } from "../http-failure.ts";

export interface TurnGateOptions {
  readonly maxTurns: number;
  readonly maxTurnsPerClient: number;
  readonly maxQueuedPerClient: number;
  readonly queueDeadlineMs: number;
}

/** Bounds turns that run at once, of all clients and of each. Who does not fit waits in line; who does not fit in the line is told when to come back. */
export interface TurnGate {
  readonly running: number;
  readonly queued: number;
  /** The returned function gives the place back, once. */
  enter(client: string, signal?: AbortSignal): Promise<() => void>;
}

interface Waiting {
  readonly client: string;
  readonly admit: () => void;
}

export function createTurnGate({ maxTurns, maxTurnsPerClient, maxQueuedPerClient, queueDeadlineMs }: TurnGateOptions): TurnGate {
  const running = new Map<string, number>();
  const line: Waiting[] = [];
  let total = 0;

  const of = (client: string): number => running.get(client) ?? 0;
  const isFree = (client: string): boolean => total < maxTurns && of(client) < maxTurnsPerClient;

  function place(client: string): () => void {
    total += 1;
    running.set(client, of(client) + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      total -= 1;
      if (of(client) === 1) running.delete(client);
      else running.set(client, of(client) - 1);
      admitNext();
    };
  }

  /** The first in line whose client may run another: a client that is at its limit does not hold up the rest. */
  function admitNext(): void {
    const at = line.findIndex(({ client }) => isFree(client));
    if (at === -1) return;
    const [next] = line.splice(at, 1);
    next!.admit();
  }

  async function enter(client: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (isFree(client)) return place(client);
    if (line.filter((one) => one.client === client).length >= maxQueuedPerClient) throw tooMany(queueDeadlineMs, "the line is full");
    return await waitInLine<Waiting, () => void>(line, (admit) => ({ client, admit: () => admit(place(client)) }), {
      deadlineMs: queueDeadlineMs,
      late: () => tooMany(queueDeadlineMs, `none ended within ${queueDeadlineMs / 1000} s`),
      signal,
    });
  }

  return {
    get running() {
      return total;
    },
    get queued() {
      return line.length;
    },
    enter,
  };
}

function tooMany(queueDeadlineMs: number, why: string): HttpFailure {
  return new HttpFailure({
    status: 429,
    code: "TOO_MANY_TURNS",
    message: `As many turns run as may, and ${why}.`,
    hint: "Try again later. server.maxTurns, maxTurnsPerClient and maxQueuedPerClient of the configuration say how many may.",
    retryAfterSeconds: Math.max(1, Math.min(30, Math.round(queueDeadlineMs / 4000))),
  });
}
