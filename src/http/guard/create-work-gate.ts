import { HttpFailure } from "../http-failure.ts";

/** Counts requests that begin something, each until the last byte of its answer is taken. */
export interface WorkGate {
  readonly isStopping: boolean;
  /** The returned function ends it, once. Throws 503 when the server is stopping, 429 when the client has as many as it may. */
  begin(work: { readonly tenant: string; readonly route: string; readonly maxPerClient?: number | undefined }): () => void;
  /** Nothing new from now on. Resolves when what was begun is over. */
  stop(): Promise<void>;
}

export function createWorkGate(): WorkGate {
  const running = new Map<string, number>();
  const over = Promise.withResolvers<void>();
  let isStopping = false;

  return {
    get isStopping() {
      return isStopping;
    },
    begin({ tenant, route, maxPerClient = Infinity }) {
      if (isStopping) throw serverStopping();
      const key = JSON.stringify([tenant, route]);
      const count = running.get(key) ?? 0;
      if (count >= maxPerClient) throw tooMany(maxPerClient);
      running.set(key, count + 1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        const left = running.get(key)! - 1;
        if (left > 0) running.set(key, left);
        else running.delete(key);
        if (isStopping && running.size === 0) over.resolve();
      };
    },
    stop() {
      isStopping = true;
      if (running.size === 0) over.resolve();
      return over.promise;
    },
  };
}

export function serverStopping(): HttpFailure {
  return new HttpFailure({
    status: 503,
    code: "SERVER_STOPPING",
    message: "The server is stopping and begins nothing new.",
    hint: "Try again when it is back.",
    retryAfterSeconds: 10,
  });
}

function tooMany(max: number): HttpFailure {
  return new HttpFailure({
    status: 429,
    code: "TOO_MANY_CALLS",
    message: `${max} calls of this client are being answered already.`,
    hint: "Wait for one of them.",
    retryAfterSeconds: 2,
  });
}
