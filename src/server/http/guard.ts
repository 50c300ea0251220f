import os from "node:os";
import { isIP, type Socket } from "node:net";
import { HttpFailure } from "./http-failure.ts";
import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

export interface OriginRules {
  /** Names besides localhost, this machine's own and addresses. */
  readonly allowedHosts: readonly string[];
  /** What clients reach the server by: its host is allowed, and its pages are the server's own, also behind a proxy that does not pass `Host` on. */
  readonly publicUrl?: string | null;
}

/**
 * A page of somebody else's that made its name point here (DNS rebinding) has that name in `Host`; one that sends a request here has itself in `Origin`.
 * Both are refused, before anything is looked at. An address in `Host` is fine: no name was bent for it.
 */
export function checkOrigin(request: Request, { allowedHosts, publicUrl = null }: OriginRules): void {
  const host = request.headers.get("host") ?? "";
  const name = hostName(host);
  const names = ["localhost", os.hostname(), ...allowedHosts, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])];
  if (name === null || !(isIP(name) !== 0 || names.some((one) => one.toLowerCase() === name)))
    throw new HttpFailure({
      code: "HOST_NOT_ALLOWED",
      message: `The request was for the host ${JSON.stringify(host.slice(0, 200))}, which this server does not go by.`,
      hint: "Use the address that it printed, or name the host in server.publicUrl or server.allowedHosts of the configuration.",
    });
  const origin = request.headers.get("origin");
  if (origin !== null && origin !== publicUrl && URL.parse(origin)?.host !== host.toLowerCase())
    throw new HttpFailure({
      code: "ORIGIN_NOT_ALLOWED",
      message: `A page of ${JSON.stringify(origin.slice(0, 200))} sent this request; only this server's own pages may.`,
    });
}

/** What a cookie rides on must come from our own page: every browser says so with requests that change something. */
export function checkOwnPage(request: Request): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  if (request.headers.get("origin") !== null || request.headers.get("sec-fetch-site") === "same-origin") return;
  throw new HttpFailure({ code: "ORIGIN_MISSING", message: "A request with a cookie did not say which page it is from." });
}

function hostName(host: string): string | null {
  const url = URL.parse(`http://${host}/`);
  if (url === null || host === "" || /[/@?#\\]/.test(host)) return null;
  return url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
}

export interface TurnGateOptions {
  readonly maxTurns: number;
  readonly maxTurnsPerClient: number;
  readonly maxQueuedPerClient: number;
  readonly queueDeadlineMs: number;
}

/** Bounds turns that run at once, of all clients and of each. A client whose queue is full gets 429. */
export function createTurnGate({ maxTurns, maxTurnsPerClient, maxQueuedPerClient, queueDeadlineMs }: TurnGateOptions): Limiter {
  return createLimiter({
    places: maxTurns,
    placesPerKey: maxTurnsPerClient,
    maxWaitingPerKey: maxQueuedPerClient,
    deadlineMs: queueDeadlineMs,
    toError: (why) =>
      new HttpFailure({
        code: "TOO_MANY_TURNS",
        message: `As many turns run as may, and ${why === "timeout" ? `none ended within ${queueDeadlineMs / 1000} s` : "the line is full"}.`,
        hint: "Try again later. server.maxTurns, maxTurnsPerClient and maxQueuedPerClient of the configuration say how many may.",
        retryAfterSeconds: Math.max(1, Math.min(30, Math.round(queueDeadlineMs / 4000))),
      }),
  });
}

export type WorkGate = ReturnType<typeof createWorkGate>;

/** Counts requests that begin something, each until the last byte of its answer is taken. */
export function createWorkGate() {
  const running = createLimiter({ places: Infinity });
  let isStopping = false;
  return {
    get isStopping(): boolean {
      return isStopping;
    },
    /** The returned function ends it, once. Throws 503 when the server is stopping, 429 when the client has as many as it may. */
    begin({ tenant, route, maxPerClient }: { tenant: string; route: string; maxPerClient?: number | undefined }): () => void {
      if (isStopping) throw serverStopping();
      return running.tryEnter(JSON.stringify([tenant, route]), maxPerClient) ?? tooMany(maxPerClient);
    },
    /** Nothing new from now on. Resolves when what runs is over. */
    stop(): Promise<void> {
      isStopping = true;
      return running.idle();
    },
  };
}

export function serverStopping(): HttpFailure {
  return new HttpFailure({
    code: "SERVER_STOPPING",
    message: "The server is stopping and begins nothing new.",
    retryAfterSeconds: 10,
  });
}

function tooMany(max: number | undefined): never {
  throw new HttpFailure({
    code: "TOO_MANY_CALLS",
    message: `${max} calls of this client are being answered already.`,
    retryAfterSeconds: 2,
  });
}

export interface SlowClientRules {
  /** A client that has something to take, and takes less than this in a second over the whole window, is cut off. The same for what it sends. */
  readonly bytesPerSecond: number;
  readonly windowMs: number;
}

export const slowClientRules: SlowClientRules = { bytesPerSecond: 1024, windowMs: 30_000 };

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Since when there has been something to move all the time, and what had been moved then. */
  since: number | null;
  moved: number;
}

/** A connection that nobody reads holds memory and keeps a turn attended. It is cut, and what it held is let go of by who hears that it closed. */
export function watchSlowClients(server: Server, { bytesPerSecond, windowMs }: SlowClientRules, onCut: () => void): Disposable {
  const open = new Set<Exchange>();

  const watch = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange: Exchange = { request, response, since: null, moved: 0 };
    open.add(exchange);
    response.once("close", () => open.delete(exchange));
  };

  function look(): void {
    const now = performance.now();
    for (const exchange of open) {
      const { request, response } = exchange;
      const { socket } = request;
      if (!isPending(request, response, socket)) exchange.since = null;
      else if (exchange.since === null) [exchange.since, exchange.moved] = [now, movedOf(socket)];
      else if (now - exchange.since >= windowMs) {
        const rate = (movedOf(socket) - exchange.moved) / ((now - exchange.since) / 1000);
        if (rate < bytesPerSecond) {
          onCut();
          socket.destroy();
        } else [exchange.since, exchange.moved] = [now, movedOf(socket)];
      }
    }
  }

  server.prependListener("request", watch);
  const timer = setInterval(look, Math.max(50, windowMs / 6)).unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      server.off("request", watch);
    },
  };
}

/** Whether it is the client that everybody waits for: it has not sent its request whole, or has not taken what is there for it. */
function isPending(request: IncomingMessage, response: ServerResponse, socket: Socket): boolean {
  return (
    !socket.destroyed &&
    ((!request.complete && !request.isPaused() && request.readableFlowing !== null) ||
      response.writableLength > 0 ||
      socket.writableLength > 0)
  );
}

function movedOf(socket: Socket): number {
  return socket.bytesRead + socket.bytesWritten - socket.writableLength;
}
