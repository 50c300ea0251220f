import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import { HttpFailure } from "./http-failure.ts";

export interface TurnLimits {
  readonly maxTurns: number;
  readonly maxTurnsPerClient: number;
  readonly maxQueuedPerClient: number;
  readonly queueDeadlineMs: number;
}

/** Limits how many turns run at once, in total and per tenant. A tenant whose queue is full gets 429. */
export function createTurnLimiter({ maxTurns, maxTurnsPerClient, maxQueuedPerClient, queueDeadlineMs }: TurnLimits): Limiter {
  return createLimiter({
    places: maxTurns,
    placesPerKey: maxTurnsPerClient,
    maxWaitingPerKey: maxQueuedPerClient,
    deadlineMs: queueDeadlineMs,
    toError: (why) =>
      new HttpFailure({
        code: "TOO_MANY_TURNS",
        message: `Too many turns are running: ${why === "timeout" ? `none ended within ${queueDeadlineMs / 1000} s` : "the queue is full"}.`,
        hint: "Try again later. The limits are server.maxTurns, maxTurnsPerClient and maxQueuedPerClient in the configuration.",
        retryAfterSeconds: Math.max(1, Math.min(30, Math.round(queueDeadlineMs / 4000))),
      }),
  });
}

export type WorkLimiter = ReturnType<typeof createWorkLimiter>;

/** Counts requests that start work, each until the last byte of its response has been read, and refuses new ones while the server stops. */
export function createWorkLimiter() {
  const running = createLimiter({ places: Infinity });
  let isStopping = false;
  return {
    get isStopping(): boolean {
      return isStopping;
    },
    /** Call the returned function when the request is done. Throws 503 if the server is stopping, 429 if the tenant has reached its limit. */
    begin({ tenant, route, maxPerClient }: { tenant: string; route: string; maxPerClient?: number | undefined }): () => void {
      if (isStopping) throw serverStopping();
      const end = running.tryEnter(JSON.stringify([tenant, route]), maxPerClient);
      if (end === null) throw tooManyCalls(maxPerClient);
      return end;
    },
    /** Refuses new requests. Resolves when the running ones are done. */
    stop(): Promise<void> {
      isStopping = true;
      return running.idle();
    },
  };
}

export function serverStopping(): HttpFailure {
  return new HttpFailure({
    code: "SERVER_STOPPING",
    message: "The server is stopping and accepts no new work.",
    retryAfterSeconds: 10,
  });
}

function tooManyCalls(max: number | undefined): HttpFailure {
  return new HttpFailure({
    code: "TOO_MANY_CALLS",
    message: `This client already has ${max} running calls.`,
    retryAfterSeconds: 2,
  });
}

export interface SlowClientRules {
  /** A client that reads or sends less than this for a whole window, although there is data to move, is disconnected. */
  readonly bytesPerSecond: number;
  readonly windowMs: number;
}

export const defaultSlowClientRules: SlowClientRules = { bytesPerSecond: 1024, windowMs: 30_000 };

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Since when the server has been waiting for the client; null while it is not. */
  pendingSince: number | null;
  /** The bytes of the connection at `pendingSince`. */
  bytesMovedBefore: number;
}

/** Disconnects clients that read or send too slowly: such a connection holds memory and keeps its turn running. */
export function watchSlowClients(server: Server, { bytesPerSecond, windowMs }: SlowClientRules, onCut: () => void): Disposable {
  const exchanges = new Set<Exchange>();

  const add = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange: Exchange = { request, response, pendingSince: null, bytesMovedBefore: 0 };
    exchanges.add(exchange);
    response.once("close", () => exchanges.delete(exchange));
  };

  function checkAll(): void {
    const now = performance.now();
    for (const exchange of exchanges) {
      const { request, pendingSince } = exchange;
      const moved = bytesMoved(request.socket);
      if (!isClientPending(exchange)) exchange.pendingSince = null;
      else if (pendingSince === null) [exchange.pendingSince, exchange.bytesMovedBefore] = [now, moved];
      else if (now - pendingSince >= windowMs) {
        const rate = (moved - exchange.bytesMovedBefore) / ((now - pendingSince) / 1000);
        if (rate < bytesPerSecond) {
          onCut();
          request.socket.destroy();
        } else [exchange.pendingSince, exchange.bytesMovedBefore] = [now, moved];
      }
    }
  }

  server.prependListener("request", add);
  const timer = setInterval(checkAll, Math.max(50, windowMs / 6)).unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      server.off("request", add);
    },
  };
}

/** Whether the server waits for the client: to send the rest of its request, or to read data that is ready. */
function isClientPending({ request, response }: Exchange): boolean {
  const { socket } = request;
  const isRequestMissing = !request.complete && !request.isPaused() && request.readableFlowing !== null;
  return !socket.destroyed && (isRequestMissing || response.writableLength > 0 || socket.writableLength > 0);
}

function bytesMoved(socket: Socket): number {
  return socket.bytesRead + socket.bytesWritten - socket.writableLength;
}
