import type { ProgressToken, ServerContext } from "@modelcontextprotocol/server";
import type { Progress } from "./contract.ts";

export interface ProgressOptions {
  /** Undefined when the client did not ask: then nothing is sent. */
  readonly token: ProgressToken | undefined;
  readonly notify: ServerContext["mcpReq"]["notify"];
}

export interface OpenProgress extends Progress {
  end(): void;
}

const BEAT_MS = 1000;
const SHORTEST_PAUSE_MS = 200;
const MAX_MESSAGE_CHARACTERS = 200;

/** A beat each second with the seconds gone by, so that a client can tell a long cell from a dead server, and the last word of who runs. */
export function openProgress({ token, notify }: ProgressOptions): OpenProgress {
  if (token === undefined) return { say: () => {}, end: () => {} };
  const startedAt = performance.now();
  let sentAt = -Infinity;
  let word = "started";
  let timer: NodeJS.Timeout | null = null;

  function send(): void {
    sentAt = performance.now();
    const progress = Math.round(sentAt - startedAt) / 1000;
    notify({ method: "notifications/progress", params: { progressToken: token!, progress, message: word } }).catch(() => {}); // the client is gone
    word = `running for ${Math.round(progress + BEAT_MS / 1000)} s`;
    schedule(BEAT_MS);
  }

  function schedule(ms: number): void {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(send, ms).unref();
  }

  send();
  return {
    say(message) {
      const line = message.trimEnd().split("\n").at(-1)?.trim() ?? "";
      if (line === "" || timer === null) return;
      word = line.slice(0, MAX_MESSAGE_CHARACTERS);
      schedule(Math.max(0, sentAt + SHORTEST_PAUSE_MS - performance.now()));
    },
    end() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}
