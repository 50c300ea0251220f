import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { startReading } from "./read-artifacts.ts";

export interface LoadOptions {
  readonly url: string;
  readonly token: string;
  /** Number of chat clients. Each asks, reads the answer to the end, and asks again. */
  readonly clients: number;
  readonly readsPerSecond: number;
  /** Paths of artifacts that are read continuously. */
  readonly artifacts: readonly string[];
  /** Aborting it stops new questions. */
  readonly until: AbortSignal;
  /** Most questions in total. */
  readonly maxTurns?: number;
}

export interface LoadResult {
  turns: number;
  /** Responses with status 429 and a Retry-After header, which the client respected. */
  refusals: number;
  /** Milliseconds of each read, in order. */
  readMs: number[];
  /** Responses that are neither an answer nor a 429. */
  failures: string[];
}

/** Runs chat clients and artifact readers concurrently over real connections. */
export async function runLoad({
  url,
  token,
  clients,
  readsPerSecond,
  artifacts,
  until,
  maxTurns = Infinity,
}: LoadOptions): Promise<LoadResult> {
  const result: LoadResult = { turns: 0, refusals: 0, readMs: [], failures: [] };
  const headers = { authorization: `Bearer ${token}` };
  let begun = 0;

  async function chat(client: number): Promise<void> {
    for (let round = 0; !until.aborted && begun < maxTurns; round += 1) {
      begun += 1;
      await ask(`load-${client}-${round}`);
    }
  }

  async function ask(id: string): Promise<void> {
    const body = JSON.stringify({ id, messages: [{ role: "user", parts: [{ type: "text", text: `What is the mean? (${id})` }] }] });
    for (;;) {
      const response = await fetch(`${url}/api/chat`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
      });
      const text = await response.text();
      if (response.status === 429 && Number(response.headers.get("retry-after")) > 0) {
        result.refusals += 1;
        if (until.aborted) return;
        await sleep(Number(response.headers.get("retry-after")) * 1000, undefined, { signal: until }).catch(() => {});
        continue;
      }
      result.turns += 1;
      if (response.status !== 200 || !text.includes('"stopReason":"complete_answer"') || !text.endsWith("data: [DONE]\n\n"))
        result.failures.push(`${id}: ${response.status} ${text.slice(-500)}`);
      return;
    }
  }

  const reading = artifacts.length === 0 ? null : startReading({ url, token, artifacts, readsPerSecond });
  if (clients === 0 && !until.aborted) await once(until, "abort");
  await Promise.all(
    Array.from({ length: clients }, (_, client) => chat(client).catch((error: unknown) => void result.failures.push(String(error)))),
  );
  const read = await reading?.stop();
  result.readMs.push(...(read?.readMs ?? []));
  result.failures.push(...(read?.failures ?? []));
  return result;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
