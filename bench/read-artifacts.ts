import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export interface ReadOptions {
  readonly url: string;
  readonly token: string;
  /** Paths to read, one after the other. */
  readonly artifacts: readonly string[];
  readonly readsPerSecond: number;
}

export interface ReadResult {
  /** Milliseconds of each read, in order. */
  readonly readMs: number[];
  readonly failures: string[];
}

export interface Reading {
  /** Resolves when the requested reads are done. */
  stop(): Promise<ReadResult>;
}

/** Reads artifacts at a constant rate, in a separate thread, so that other work of this process does not count as waiting for the server. */
export function startReading(options: ReadOptions): Reading {
  const worker = new Worker(import.meta.filename, { workerData: options });
  const result = new Promise<ReadResult>((resolve, reject) => worker.once("message", resolve).once("error", reject));
  return {
    async stop() {
      worker.postMessage("stop");
      return await result;
    },
  };
}

async function readUntil(done: AbortSignal, { url, token, artifacts, readsPerSecond }: ReadOptions): Promise<ReadResult> {
  const result: ReadResult = { readMs: [], failures: [] };

  async function read(path: string): Promise<void> {
    const startedAt = performance.now();
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    const bytes = await response.arrayBuffer();
    result.readMs.push(performance.now() - startedAt);
    if (response.status !== 200 || bytes.byteLength === 0) result.failures.push(`${path}: ${response.status}`);
  }

  const reading: Promise<void>[] = [];
  for (let index = 0; !done.aborted; index += 1) {
    reading.push(read(artifacts[index % artifacts.length]!).catch((error: unknown) => void result.failures.push(String(error))));
    await sleep(1000 / readsPerSecond);
  }
  await Promise.all(reading);
  return result;
}

if (!isMainThread && parentPort !== null) {
  const done = new AbortController();
  parentPort.once("message", () => done.abort());
  parentPort.postMessage(await readUntil(done.signal, workerData as ReadOptions));
}
