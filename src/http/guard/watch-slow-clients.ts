import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

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
