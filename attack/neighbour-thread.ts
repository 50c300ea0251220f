/** The well-behaved tenant: computes a figure again and again and reads what it has, in a thread of its own, so that its times are the server's. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import type { Reply } from "../test/fixtures/loopback-model.ts";

const KEY = "script-neighbour";
const READ_EVERY_MS = 100;
const TURN_EVERY_MS = 250;

const code = `
frame = to_frame(get_prices_1)
plt.plot(frame["day"], frame["price"])
save_figure("A line of daily prices over three hundred days", title="Prices")
set_result(float(frame["price"].mean()))
`;
const postProcessingContract = {
  operation: "derive_metric",
  reason: "The mean price is asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts: ["image"],
};

/** What the model says in a turn of the neighbour. */
export const neighbourScript: { readonly key: string; readonly replies: readonly Reply[] } = {
  key: KEY,
  replies: [
    { calls: [{ tool: "get_prices", input: {} }] },
    { calls: [{ tool: "code_interpreter", input: { code, postProcessingContract } }] },
    { calls: [{ tool: "final_response", input: { answer: "Figure 1 shows the prices." } }] },
  ],
};

interface Tried {
  readonly what: "turn" | "read";
  readonly ms: number;
  /** Why it did not get what it asked for; null when it did. */
  readonly failure: string | null;
}

export interface NeighbourReport {
  readonly turnMs: readonly number[];
  readonly readMs: readonly number[];
  readonly failures: readonly string[];
}

export interface Neighbour extends AsyncDisposable {
  /** What the neighbour did since the last report. Waits for its current turn and for `minTurns`. */
  report(options?: { readonly minTurns?: number }): Promise<NeighbourReport>;
}

interface Place {
  readonly url: string;
  readonly token: string;
}

export function openNeighbour(place: Place): Neighbour {
  const worker = new Worker(import.meta.filename, { workerData: place });
  let tried: Tried[] = [];
  worker.on("message", (one: Tried) => tried.push(one));
  const turns = (): Tried[] => tried.filter(({ what }) => what === "turn");
  return {
    async report({ minTurns = 1 } = {}) {
      const wanted = Math.max(minTurns, turns().length + 1);
      while (turns().length < wanted) await once(worker, "message");
      const times = (what: Tried["what"]): number[] => tried.filter((one) => one.what === what).map(({ ms }) => ms);
      const report = { turnMs: times("turn"), readMs: times("read"), failures: tried.flatMap(({ failure }) => failure ?? []) };
      tried = [];
      return report;
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

async function liveOn({ url, token }: Place, report: (tried: Tried) => void): Promise<never> {
  const authorization = `Bearer ${token}`;
  let artifact: string | null = null;

  async function attempt(what: Tried["what"], work: () => Promise<string | null>): Promise<void> {
    const startedAt = performance.now();
    const failure = await work().catch((error: unknown) => `${what}: ${String(error)}`);
    report({ what, ms: performance.now() - startedAt, failure });
  }

  async function takeTurn(): Promise<string | null> {
    const response = await fetch(`${url}/api/turns`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ question: `What is the mean price? (${KEY})`, wait: true }),
    });
    const text = await response.text();
    if (response.status !== 200) return `turn: ${response.status} ${text.slice(0, 300)}`;
    const { turnId, result, cells } = JSON.parse(text) as TurnDocument;
    artifact = result?.artifacts[0]?.url ?? artifact;
    const isComplete = result?.outcome.stopReason === "complete_answer" && result.artifacts.length === 1 && cells[0]?.status === "ok";
    const failures = JSON.stringify([result?.grounding.failures, result?.gaps]).slice(0, 500);
    return isComplete ? null : `turn ${turnId}: ${result?.outcome.stopReason}, cell ${cells[0]?.status}, ${failures}`;
  }

  async function read(path: string): Promise<string | null> {
    const response = await fetch(new URL(path, url), { headers: { authorization } });
    const { byteLength } = await response.arrayBuffer();
    return response.status === 200 && byteLength > 0 ? null : `read of ${path}: ${response.status}`;
  }

  const readOn = async (): Promise<never> => {
    for (let at = 0; ; at += 1) {
      const paths = ["/api/conversations?limit=5", "/healthz", ...(artifact === null ? [] : [artifact])];
      await attempt("read", () => read(paths[at % paths.length]!));
      await sleep(READ_EVERY_MS);
    }
  };
  void readOn();
  for (;;) {
    await attempt("turn", takeTurn);
    await sleep(TURN_EVERY_MS);
  }
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  await liveOn(workerData as Place, (tried) => port.postMessage(tried));
}
