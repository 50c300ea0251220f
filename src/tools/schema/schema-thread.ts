import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { nextMessage } from "../../waiting/next-message.ts";
import type { SchemaVerdict } from "./validate-json-schema.ts";

export interface ValidationRequest {
  readonly key: string;
  /** Only with the first request of its key. */
  readonly schemaJson?: string | undefined;
  readonly value: unknown;
  readonly firstIssueOnly: boolean;
}

/** Validates in a thread of its own, which starts at the first use and is replaced when a schema is too much for it. */
export interface SchemaThread {
  /** One at a time; the limit counts from when a request's turn comes. `schemaJson` is what `key` stands for. Never rejects but when closed. */
  validate(request: ValidationRequest & { readonly schemaJson: string }): Promise<SchemaVerdict>;
  close(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const MAX_SCHEMAS = 500;

export function createSchemaThread({ timeoutMs = 3_000 }: { timeoutMs?: number } = {}): SchemaThread {
  let worker: Worker | null = null;
  let queue: Promise<unknown> = Promise.resolve();
  /** What the present thread has compiled. */
  const known = new Set<string>();

  async function validateNow({ schemaJson, ...request }: ValidationRequest & { schemaJson: string }): Promise<SchemaVerdict> {
    if (known.size >= MAX_SCHEMAS) await end();
    worker ??= await startWorker();
    if (worker === null) return unusable("the thread that checks schemas did not start");
    worker.postMessage({ ...request, schemaJson: known.has(request.key) ? undefined : schemaJson });
    known.add(request.key);
    const verdict = await nextMessage<SchemaVerdict>(worker, timeoutMs);
    if (typeof verdict === "object") return verdict;
    await end();
    return unusable(verdict === "timeout" ? `checking takes longer than ${timeoutMs / 1000} s` : "it made the validator fail");
  }

  async function end(): Promise<void> {
    known.clear();
    const current = worker;
    worker = null;
    await current?.terminate();
  }

  return {
    validate(request) {
      const answer = queue.then(() => validateNow(request)).catch((error: unknown) => unusable(String(error).slice(0, 200)));
      queue = answer;
      return answer;
    },
    async close() {
      await queue;
      await end();
    },
  };
}

function unusable(reason: string): SchemaVerdict {
  return { status: "unusable", reason };
}

async function startWorker(): Promise<Worker | null> {
  const program = join(import.meta.dirname, `validate-schema-process${extname(import.meta.filename)}`);
  const worker = new Worker(program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 4 } });
  worker.on("error", () => {}); // its end is told by "exit"
  const ready = await nextMessage<"ready">(worker, START_TIMEOUT_MS);
  if (ready === "ready") return worker;
  await worker.terminate();
  return null;
}
