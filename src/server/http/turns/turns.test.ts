import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tables } from "../../../data/conversation-data.ts";
import { createUploadStore } from "../../../data/create-upload-store.ts";
import type { History } from "../../../history/history.ts";
import { openHistory } from "../../../history/open-history.ts";
import { createConversations } from "../conversations.ts";
import { createLog } from "../create-log.ts";
import { createTenantStores } from "../create-tenant-stores.ts";
import { createTurnGate } from "../guard.ts";
import { Turns } from "./turns.ts";
import { findTurn } from "./to-turn-document.ts";

/** Turns that fail at once, over a history that can be made to refuse every write. */
describe("the end of a turn", () => {
  let directory: string;
  let history: History;
  let turns: Turns;
  let isFull: boolean;
  let log: string[];
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-turns-"));
    [isFull, log] = [false, []];
    const opened = openHistory({ file: path.join(directory, "history.sqlite") });
    const write = <Args extends unknown[], Value>(work: (...args: Args) => Value) => {
      return (...args: Args): Value => {
        if (isFull) throw new Error("database or disk is full");
        return work(...args);
      };
    };
    history = {
      ...opened,
      turns: { ...opened.turns, begin: write(opened.turns.begin), end: write(opened.turns.end) },
      events: { ...opened.events, append: write(opened.events.append) },
    };
    const uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    const storesOf = createTenantStores({ directory, history, uploads });
    const logger = createLog({ level: "error", format: "json", write: (line) => log.push((JSON.parse(line) as { event: string }).event) });
    const budgets = { previewBytes: 4096, stepBytes: 24_576 } as never;
    turns = new Turns({
      configured: {
        openConversation() {
          isFull = fillsUp;
          throw new Error("the disk is full");
        },
      } as never,
      model: async () => ({}) as never,
      history,
      conversations: createConversations({ history, storesOf, tables: {} as Tables, uploads, budgets, log: logger }),
      storesOf,
      gate: createTurnGate({ maxTurns: 1, maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 }),
      unattendedMs: 60_000,
      log: logger,
      onEvent: () => {},
    });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });
  let fillsUp = false;

  const start = () =>
    turns.start({
      tenant: "a",
      tokenHash: null,
      conversationId: "c",
      question: "?",
      isAttended: false,
      signal: new AbortController().signal,
    });

  test("comes when the server fails, and says so", async () => {
    fillsUp = false;
    const turn = await start();
    await turn.over;
    expect(turns.find("a", turn.turnId)).toBeNull();
    expect(findTurn({ history, turns }, "a", turn.turnId)).toMatchObject({
      status: "ended",
      stopReason: "aborted",
      result: { gaps: [{ code: "turn_failed", severity: "major" }] },
    });
  });

  test("that cannot be written is told to everybody who asks, is written when it can be, and holds up neither turns nor the end of the server", async () => {
    fillsUp = true;
    const turn = await start();
    await turn.over;
    const ended = { status: "ended", stopReason: "aborted", result: { gaps: [{ code: "turn_failed" }] } };
    expect(history.turns.get("a", turn.turnId)).toMatchObject({ status: "running" });
    expect(findTurn({ history, turns }, "a", turn.turnId)).toMatchObject(ended);
    expect(turns.findRunning("a", "c")).toBeNull();
    const heard = [];
    for await (const { event } of turns.find("a", turn.turnId)!.follow(0, new AbortController().signal)) heard.push(event.type);
    expect(heard).toEqual(["turn-end"]);
    await expect(start()).rejects.toThrow("database or disk is full");
    isFull = false;
    fillsUp = false;
    expect(turns.find("a", turn.turnId)).toBeNull();
    expect(history.turns.get("a", turn.turnId)).toMatchObject(ended);
    expect(history.events.read({ tenant: "a", turnId: turn.turnId }).map(({ seq, event }) => [seq, event.type])).toEqual([[1, "turn-end"]]);
    const next = await start();
    await next.over;
    isFull = true;
    await turns.drain(0);
    expect(new Set(log)).toEqual(new Set(["turn_failed", "end_not_kept"]));
  });
});
