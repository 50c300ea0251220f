import { expect, test } from "vitest";
import { runLoad } from "../bench/serve-load.ts";
import { turnDocumentSchema } from "../src/protocol/http-turns.ts";
import { openTestServer } from "./fixtures/open-test-server.ts";
import { listSandboxResources } from "./fixtures/host-processes.ts";

const TURNS = 24;

test(
  "serves twelve chat clients and readers of an image at once, with no failures except 429, and leaves nothing behind",
  { timeout: 300_000 },
  async () => {
    const server = { maxTurnsPerClient: 3, maxQueuedPerClient: 6, queueDeadlineMs: 60_000 };
    const open = await openTestServer({ configuration: { server, sandbox: { maxSandboxes: 2, poolSize: 1, queueDeadlineMs: 240_000 } } });
    try {
      const { body } = await open.call("POST", "/api/turns", { question: "Warm up.", wait: true }, turnDocumentSchema);
      const artifacts = body.result!.artifacts.map(({ url }) => new URL(url).pathname);
      let most = 0;
      const watch = setInterval(
        () => (most = Math.max(most, open.server.parts.configured.runtime.gate.taken, open.server.parts.turnLimiter.taken - 1)),
        5,
      );
      const token = open.server.tokens.generated!;
      const options = { url: open.url, token, clients: 12, readsPerSecond: 50, artifacts, maxTurns: TURNS };
      const result = await runLoad({ ...options, until: new AbortController().signal });
      clearInterval(watch);
      expect(result.failures).toEqual([]);
      expect(result.turns).toBe(TURNS);
      expect(result.readMs.length).toBeGreaterThan(10); // reads that failed are not counted
      expect(result.refusals).toBeGreaterThan(0); // twelve at once, and only nine fit
      expect(most).toBeLessThanOrEqual(2);
      const { parts } = open.server;
      expect([parts.turnLimiter.taken, parts.turnLimiter.waiting]).toEqual([0, 0]);
      expect(parts.history.turns.list({ tenant: "local", limit: 200 }).items.map(({ stopReason }) => stopReason)).toEqual(
        Array.from({ length: TURNS + 1 }, () => "complete_answer"),
      );
    } finally {
      await open[Symbol.asyncDispose]();
    }
    expect(await listSandboxResources()).toEqual({ processes: [], leases: [] });
  },
);
