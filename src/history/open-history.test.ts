import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TurnResult } from "../protocol/turn-result.ts";
import type { FileNames, History } from "./history.ts";
import { migrations, openHistory } from "./open-history.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const hash = (digit: string): string => digit.repeat(64);

describe("openHistory", () => {
  let directory: string;
  let file: string;
  let history: History;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-history-"));
    file = path.join(directory, "deep", "history.sqlite");
    history = openHistory({ file });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  function result(turnId: string, conversationId: string, dataset: string | null = null): TurnResult {
    return {
      schemaVersion: 1,
      turnId,
      conversationId,
      answer: `The answer of ${turnId}.`,
      artifacts: [],
      gaps: [],
      outcome: { stopReason: "complete_answer" },
      confidence: { level: "high", reason: "All calls succeeded." },
      grounding: { toolCallAttemptCount: 0, toolCallSuccessCount: 0, toolCallFailureCount: 0, failures: [] },
      dataset: dataset === null ? null : { datasetId: `ds_${dataset.slice(0, 24)}`, hash: dataset, bytes: 10, publicDataUrl: "/data/x" },
      usage: { steps: 1, inputTokens: 0, outputTokens: 0, wallMs: 1, sandboxMs: 0 },
      trace: [],
    };
  }
  function addTurn(tenant: string, turnId: string, { conversationId = "c", minute = 0, dataset = null as string | null } = {}): void {
    history.conversations.ensure({ tenant, id: conversationId, title: `About ${turnId}`, at: at(minute) });
    history.turns.begin({ tenant, turnId, conversationId, question: `What of ${turnId}?`, at: at(minute) });
    history.turns.end({ tenant, turnId, result: result(turnId, conversationId, dataset), at: at(minute) });
  }

  test("creates a file that only its owner can read, and finds everything in it after reopening", () => {
    addTurn("a", "t1");
    history.events.append({ tenant: "a", turnId: "t1" }, { seq: 1, at: at(0), event: { type: "answer-delta", text: "ä\u2028" } });
    history.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    history = openHistory({ file });
    expect(history.turns.get("a", "t1")).toEqual({
      tenant: "a",
      turnId: "t1",
      conversationId: "c",
      question: "What of t1?",
      status: "ended",
      createdAt: at(0),
      endedAt: at(0),
      stopReason: "complete_answer",
      supersededBy: null,
      result: result("t1", "c"),
    });
    expect(history.events.read({ tenant: "a", turnId: "t1" })).toEqual([
      { seq: 1, at: at(0), event: { type: "answer-delta", text: "ä\u2028" } },
    ]);
  });

  test("refuses a file of a newer schema version and leaves it unchanged", () => {
    history.close();
    const database = new DatabaseSync(file);
    database.exec("PRAGMA user_version = 99");
    database.close();
    expect(() => openHistory({ file })).toThrow(
      `The history ${file} has schema version 99; this version of Sluice supports versions up to 7.`,
    );
    const again = new DatabaseSync(file);
    expect(again.prepare("PRAGMA user_version").get()).toEqual({ user_version: 99 });
    again.close();
  });

  test("migrates a file of an older version and keeps its rows", () => {
    history.close();
    rmSync(file);
    const database = new DatabaseSync(file);
    database.exec(migrations[0]!);
    database.exec("PRAGMA user_version = 1; INSERT INTO conversations VALUES ('a', 'c', 'Old', '2026', '2026')");
    database.close();
    history = openHistory({ file });
    history.references.addPublished({ tenant: "b", contentHash: hash("1"), type: "png", bytes: 5, at: at(0) });
    expect([history.conversations.get("a", "c")?.title, history.tenants.list()]).toEqual(["Old", ["a", "b"]]);
  });

  test("adds an upload only if its bytes exist", () => {
    const place = { tenant: "a", conversationId: "c", at: at(0) };
    const row = { alias: "x", record: "{}", sha256: hash("1"), bytes: 5 };
    expect([history.uploads.add(place, row, () => false), history.uploads.list("a", "c")]).toEqual([false, []]);
    expect([history.uploads.add(place, row, () => true), history.uploads.list("a", "c")]).toEqual([true, [row]]);
  });

  test("rolls back a dry run", () => {
    addTurn("a", "t1");
    const duringDryRun = history.dryRun(() => {
      history.references.deleteConversation("a", "c", () => {});
      return history.conversations.get("a", "c");
    });
    expect([duringDryRun, history.conversations.get("a", "c")?.id]).toEqual([null, "c"]);
  });

  test("never finds rows of another tenant", () => {
    addTurn("a", "t1", { dataset: hash("1") });
    expect(history.turns.get("b", "t1")).toBeNull();
    expect(history.conversations.get("b", "c")).toBeNull();
    expect(history.turns.findDataset("b", `ds_${"1".repeat(24)}`)).toBeNull();
    expect(history.conversations.list({ tenant: "b", limit: 10, search: "answer" }).items).toEqual([]);
    history.references.deleteTurn("b", "t1", () => {});
    expect(history.turns.findDataset("a", `ds_${"1".repeat(24)}`)).toEqual({ hash: hash("1") });
  });

  test("lists conversations page by page, most recently used first, and searches text with wildcard characters literally", () => {
    for (const [index, id] of ["c1", "c2", "c3"].entries()) addTurn("a", `t${index + 1}`, { conversationId: id, minute: index });
    const first = history.conversations.list({ tenant: "a", limit: 2 });
    expect(first.items.map(({ id, turns }) => [id, turns])).toEqual([
      ["c3", 1],
      ["c2", 1],
    ]);
    const second = history.conversations.list({ tenant: "a", limit: 2, before: first.next! });
    expect([second.items.map(({ id }) => id), second.next]).toEqual([["c1"], null]);
    expect(
      history.conversations.list({ tenant: "a", limit: 9, search: "ANSWER OF T2" }).items.map(({ id, snippet }) => [id, snippet]),
    ).toEqual([["c2", "The answer of t2."]]);
    expect(history.conversations.list({ tenant: "a", limit: 9, search: "100%_" }).items).toEqual([]);
  });

  test("deletes a turn with the files that only it uses", () => {
    addTurn("a", "t1", { dataset: hash("1") });
    addTurn("a", "t2", { minute: 1, dataset: hash("2") });
    addTurn("b", "t3");
    const artifact = (tenant: string, turnId: string, digit: string): void =>
      history.references.addArtifact({ tenant, turnId, contentHash: hash(digit), type: "png", bytes: 5 });
    artifact("a", "t1", "a");
    artifact("a", "t1", "b");
    artifact("a", "t2", "b");
    artifact("b", "t3", "a");
    const evidence = (alias: string, turnId: string, digit: string): void =>
      history.evidence.add({ tenant: "a", conversationId: "c" }, { alias, turnId, record: "{}", sha256: hash(digit), bytes: 7 });
    evidence("only_first", "t1", "c");
    evidence("named_later", "t1", "d");
    evidence("of_second", "t2", "e");
    history.events.append(
      { tenant: "a", turnId: "t2" },
      { seq: 1, at: at(1), event: { type: "tool-start", step: 1, callId: "x", tool: "render_chart", arguments: { alias: "named_later" } } },
    );
    const removed: FileNames[] = [];
    history.references.deleteTurn("a", "t1", (files) => void removed.push(files));
    expect(removed).toEqual([{ artifacts: [`${hash("a")}.png`], datasets: [hash("1")], evidence: [hash("c")], uploads: [] }]);
    expect(history.evidence.list("a", "c").map(({ alias, turnId }) => [alias, turnId])).toEqual([
      ["named_later", null],
      ["of_second", "t2"],
    ]);
    expect(history.references.filesInUse("b").artifacts).toEqual([`${hash("a")}.png`]);
  });

  test("deletes nothing if the files cannot be removed", () => {
    addTurn("a", "t1");
    expect(() =>
      history.references.deleteConversation("a", "c", () => {
        throw new Error("the disk is read-only");
      }),
    ).toThrow("the disk is read-only");
    expect(history.turns.get("a", "t1")).not.toBeNull();
  });

  test("ends turns that were running when the server died, with a result built from their events", () => {
    history.conversations.ensure({ tenant: "a", id: "c", title: "x", at: at(0) });
    history.turns.begin({ tenant: "a", turnId: "t1", conversationId: "c", question: "Go?", at: at(0) });
    const place = { tenant: "a", turnId: "t1" };
    history.events.append(place, { seq: 1, at: at(0), event: { type: "step-start", step: 1, of: 2 } });
    const end = {
      type: "tool-end",
      step: 1,
      callId: "x",
      tool: "get_prices",
      status: "error",
      durationMs: 5,
      reason: "it was down",
    } as const;
    history.events.append(place, { seq: 2, at: at(1), event: end });
    history.events.append(place, { seq: 3, at: at(1), event: { type: "answer-delta", text: "So far." } });
    expect(history.recoverTurns(at(9))).toEqual(["t1"]);
    const detail = "The server stopped during this turn, so the answer is incomplete. Ask again.";
    const turn = history.turns.get("a", "t1")!;
    expect(turn).toMatchObject({ status: "ended", endedAt: at(9), stopReason: "aborted" });
    expect(turn.result).toEqual({
      schemaVersion: 1,
      turnId: "t1",
      conversationId: "c",
      answer: `So far.\n\n${detail}`,
      artifacts: [],
      gaps: [{ code: "server_stopped", severity: "major", detail }],
      outcome: { stopReason: "aborted" },
      confidence: { level: "low", reason: detail },
      grounding: {
        toolCallAttemptCount: 1,
        toolCallSuccessCount: 0,
        toolCallFailureCount: 1,
        failures: [{ tool: "get_prices", reason: "it was down" }],
      },
      dataset: null,
      usage: { steps: 1, inputTokens: 0, outputTokens: 0, wallMs: 60_000, sandboxMs: 0 },
      trace: [{ step: 1, calls: [{ tool: "get_prices", durationMs: 5, status: "error", artifacts: [] }] }],
    });
    expect(history.events.read({ ...place, after: 3 }).map(({ seq, event }) => [seq, event.type])).toEqual([
      [4, "answer-delta"],
      [5, "turn-end"],
    ]);
    expect(history.recoverTurns(at(10))).toEqual([]);
  });
});
