import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tables } from "../../data/conversation-data.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import type { History } from "../../history/history.ts";
import { openHistory } from "../../history/open-history.ts";
import { createLog } from "./create-log.ts";
import { createTenantStores } from "./create-tenant-stores.ts";
import { createConversations, type Conversations, type LiveConversation } from "./conversations.ts";

describe("conversations in use", () => {
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
    conversations = createConversations({ history, storesOf, tables: {} as Tables, uploads, budgets, log });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  const place = { tenant: "a", id: "c" };
  /** Uses it until it is told to leave. */
  function stay(): { live: Promise<LiveConversation>; leave: () => void; left: Promise<void> } {
    const entered = Promise.withResolvers<LiveConversation>();
    const { promise, resolve } = Promise.withResolvers<void>();
    const left = conversations.use(place, async (live) => {
      entered.resolve(live);
      await promise;
    });
    return { live: entered.promise, leave: resolve, left };
  }

  test("are one object for all, also when something of them was removed, and are read anew once nobody uses them", async () => {
    const first = stay();
    const live = await first.live;
    live.evidence.add({ tool: "t", arguments: {}, output: { content: [{ type: "text", text: "[1]" }] } });
    conversations.refresh(place);
    const second = stay();
    expect(await second.live).toBe(live);
    expect(conversations.isInUse(place)).toBe(true);
    for (const user of [first, second]) {
      user.leave();
      await user.left;
    }
    expect(conversations.isInUse(place)).toBe(false);
    const after = await conversations.use(place, async (one) => one);
    expect([after === live, after.evidence.aliases()]).toEqual([false, []]);
  });

  test("are removed when nothing uses them any more, and who comes meanwhile gets a new one", async () => {
    const first = stay();
    const live = await first.live;
    const order: string[] = [];
    live.removed.addEventListener("abort", () => order.push("told"));
    const removed = conversations.remove(place, () => void order.push("removed"));
    const next = conversations.use(place, async (one) => {
      order.push("used again");
      return one;
    });
    await new Promise((resolve) => setImmediate(resolve));
    first.leave();
    await Promise.all([removed, next]);
    expect([order, (await next) === live]).toEqual([["told", "removed", "used again"], false]);
    expect(live.removed.reason).toMatchObject({ code: "CONVERSATION_REMOVED" });
  });

  test("that fail to be removed stay, and say so", async () => {
    await expect(
      conversations.remove(place, () => {
        throw new Error("disk");
      }),
    ).rejects.toThrow("disk");
    expect(await conversations.use(place, async ({ id }) => id)).toBe("c");
  });

  test("write an alias once, whoever saves it", async () => {
    await conversations.use(place, async (live) => {
      const { alias } = live.evidence.add({ tool: "t", arguments: {}, output: { content: [{ type: "text", text: "[1]" }] } });
      const other = live.evidence.add({ tool: "u", arguments: {}, output: { content: [{ type: "text", text: "[2]" }] } });
      await Promise.all([conversations.save(live, "turn-1", [alias]), conversations.save(live, "turn-2")]);
      expect(history.evidence.list("a", "c").map((row) => [row.alias, row.turnId])).toEqual([
        [alias, "turn-1"],
        [other.alias, "turn-2"],
      ]);
    });
  });
});
