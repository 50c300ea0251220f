/** The language model of the attacked server, in a thread of its own: the work of the attacks must not delay the neighbour's answers. */
import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { openLoopbackModel, type Reply } from "../test/fixtures/loopback-model.ts";

export interface ModelThread extends AsyncDisposable {
  readonly url: string;
  /** A question that contains the key gets these replies, one for each step; the last one repeats. */
  setScript(key: string, replies: readonly Reply[]): Promise<void>;
}

interface Script {
  readonly key: string;
  readonly replies: readonly Reply[];
}

export async function openModelThread(): Promise<ModelThread> {
  const worker = new Worker(import.meta.filename);
  const [url] = (await once(worker, "message")) as [string];
  return {
    url,
    async setScript(key, replies) {
      const taken = once(worker, "message");
      worker.postMessage({ key, replies } satisfies Script);
      await taken;
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

interface Message {
  readonly role: string;
  readonly content?: unknown;
}

async function serveScripts(port: NonNullable<typeof parentPort>): Promise<void> {
  const scripts = new Map<string, readonly Reply[]>();
  const model = await openLoopbackModel((asked) => {
    model.requests.length = 0; // they can be large, and are not needed
    if (asked["tools"] === undefined) return { text: "That is the answer." };
    const messages = asked["messages"] as readonly Message[];
    const question = messages.findLastIndex(({ role, content }) => role === "user" && findKey(content) !== null);
    const replies = scripts.get(findKey(messages[question]?.content) ?? "") ?? [];
    const step = messages.slice(question).filter(({ role }) => role === "assistant").length;
    return replies[Math.min(step, replies.length - 1)] ?? { text: "There is no script for this question." };
  });
  port.on("message", ({ key, replies }: Script) => {
    scripts.set(key, replies);
    port.postMessage("taken");
  });
  port.postMessage(model.url);
}

function findKey(content: unknown): string | null {
  return /script-[\w-]+/.exec(JSON.stringify(content ?? ""))?.[0] ?? null;
}

if (!isMainThread && parentPort !== null) await serveScripts(parentPort);
