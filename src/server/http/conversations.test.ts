import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tables } from "../../data/tables/create-tables.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import type { History } from "../../history/history.ts";
import { openHistory } from "../../history/open-history.ts";
import { Conversations, type LiveConversation } from "./conversations.ts";
import { createLog } from "./create-log.ts";
import { createTenantStores } from "./create-tenant-stores.ts";

describe("Conversations", () => {
  let directory: string;
  let history: History;
  let conversations: Conversations;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-conversations-"));
    history = openHistory({ file: path.join(directory, "history.sqlite") });
    const uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    const storesOf = createTenantStores({ directory, history, uploads });
    const budgets = { previewBytes: 4096, stepBytes: 24_576 } as never;
    const log = createLog({ level: "error", format: "json", write: () => {} });
    conversations = new Conversations({ history, storesOf, tables: {} as Tables, uploads, budgets, maxBytes: Infinity, log });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  const key = { tenant: "a", id: "c" };
  /** Uses the conversation until `leave` is called. */
  function enter(): { live: Promise<LiveConversation>; leave: () => void; left: Promise<void> } {
    const opened = Promise.withResolvers<LiveConversation>();
    const { promise, resolve } = Promise.withResolvers<void>();
    const left = conversations.use(key, async (live) => {
      opened.resolve(live);
      await promise;
    });
    return { live: opened.promise, leave: resolve, left };
  }

  test("shares one object between all users, also after an invalidation, and reads it again once it is unused", async () => {
    const first = enter();
    const live = await first.live;
    live.evidence.add({ tool: "t", arguments: {}, output: { content: [{ type: "text", text: "[1]" }] } });
    conversations.invalidate(key);
    const second = enter();
    expect(await second.live).toBe(live);
    expect(conversations.isInUse(key)).toBe(true);
    for (const user of [first, second]) {
      user.leave();
      await user.left;
    }
    expect(conversations.isInUse(key)).toBe(false);
    const after = await conversations.use(key, async (one) => one);
    expect([after === live, after.evidence.aliases()]).toEqual([false, []]);
  });

  test("removes a conversation once it is unused, and gives later users a new one", async () => {
    const first = enter();
    const live = await first.live;
    const order: string[] = [];
    live.removalSignal.addEventListener("abort", () => order.push("aborted"));
    const removed = conversations.remove(key, () => void order.push("removed"));
    const next = conversations.use(key, async (one) => {
      order.push("used again");
      return one;
    });
    await new Promise((resolve) => setImmediate(resolve));
    first.leave();
    await Promise.all([removed, next]);
    expect([order, (await next) === live]).toEqual([["aborted", "removed", "used again"], false]);
    expect(live.removalSignal.reason).toMatchObject({ code: "CONVERSATION_REMOVED" });
  });

  test("keeps a conversation whose removal failed", async () => {
    await expect(
      conversations.remove(key, () => {
        throw new Error("disk");
      }),
    ).rejects.toThrow("disk");
    expect(await conversations.use(key, async ({ id }) => id)).toBe("c");
  });

  test("writes an alias once, even if two calls save it at the same time", async () => {
    await conversations.use(key, async (live) => {
      const { alias } = live.evidence.add({ tool: "t", arguments: {}, output: { content: [{ type: "text", text: "[1]" }] } });
      const other = live.evidence.add({ tool: "u", arguments: {}, output: { content: [{ type: "text", text: "[2]" }] } });
      await Promise.all([conversations.saveEvidence(live, "turn-1", [alias]), conversations.saveEvidence(live, "turn-2")]);
      expect(history.evidence.list("a", "c").map((row) => [row.alias, row.turnId])).toEqual([
        [alias, "turn-1"],
        [other.alias, "turn-2"],
      ]);
    });
  });
});
