import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tables } from "../../../data/tables/create-tables.ts";
import { createUploadStore } from "../../../data/create-upload-store.ts";
import type { History } from "../../../history/history.ts";
import { openHistory } from "../../../history/open-history.ts";
import { createTurnLimiter } from "../client-limits.ts";
import { Conversations } from "../conversations.ts";
import { createLog } from "../create-log.ts";
import { createTenantStores } from "../create-tenant-stores.ts";
import { findTurn } from "./turn-document.ts";
import { Turns } from "./turns.ts";

/** Turns that fail at once, with a history that can refuse every write. */
describe("Turns", () => {
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
      conversations: new Conversations({ history, storesOf, tables: {} as Tables, uploads, budgets, maxBytes: Infinity, log: logger }),
      storesOf,
      turnLimiter: createTurnLimiter({ maxTurns: 1, maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 }),
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
      subject: null,
      conversationId: "c",
      question: "?",
      isAttended: false,
      signal: new AbortController().signal,
    });

  test("ends a turn with a gap if the server fails", async () => {
    fillsUp = false;
    const turn = await start();
    await turn.ended;
    expect(turns.find("a", turn.turnId)).toBeNull();
    expect(findTurn({ history, turns }, "a", turn.turnId)).toMatchObject({
      status: "ended",
      stopReason: "aborted",
      result: { gaps: [{ code: "turn_failed", severity: "major" }] },
    });
  });

  test("serves a result that could not be stored from memory, stores it once that is possible, and blocks neither turns nor the shutdown", async () => {
    fillsUp = true;
    const turn = await start();
    await turn.ended;
    const ended = { status: "ended", stopReason: "aborted", result: { gaps: [{ code: "turn_failed" }] } };
    expect(history.turns.get("a", turn.turnId)).toMatchObject({ status: "running" });
    expect(findTurn({ history, turns }, "a", turn.turnId)).toMatchObject(ended);
    expect(turns.findRunning("a", "c")).toBeNull();
    const types = [];
    for await (const { event } of turns.find("a", turn.turnId)!.follow(0, new AbortController().signal)) types.push(event.type);
    expect(types).toEqual(["turn-end"]);
    await expect(start()).rejects.toThrow("database or disk is full");
    isFull = false;
    fillsUp = false;
    expect(turns.find("a", turn.turnId)).toBeNull();
    expect(history.turns.get("a", turn.turnId)).toMatchObject(ended);
    expect(history.events.read({ tenant: "a", turnId: turn.turnId }).map(({ seq, event }) => [seq, event.type])).toEqual([[1, "turn-end"]]);
    const next = await start();
    await next.ended;
    isFull = true;
    await turns.drain(0);
    expect(new Set(log)).toEqual(new Set(["turn_failed", "end_not_kept"]));
  });
});
