import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CellRun } from "../protocol/http-cells.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { RecordedResult } from "../protocol/turn-result.ts";
import type { History } from "./history.ts";
import { countQuarantined, openHistory } from "./open-history.ts";

const at = "2026-01-01T00:00:00.000Z";
const place = { tenant: "a", turnId: "t1" };
const result: RecordedResult = {
  schemaVersion: 1,
  turnId: "t1",
  conversationId: "c",
  answer: "It rose.",
  artifacts: [],
  gaps: [],
  outcome: { stopReason: "complete_answer" },
  confidence: { level: "high", reason: "All calls succeeded." },
  grounding: { toolCallAttemptCount: 0, toolCallSuccessCount: 0, toolCallFailureCount: 0, failures: [] },
  dataset: null,
  usage: { steps: 1, inputTokens: 0, outputTokens: 0, wallMs: 1, sandboxMs: 0 },
  trace: [],
};
const events: TurnEvent[] = [
  { type: "turn-start", turnId: "t1", conversationId: "c", question: "What?" },
  { type: "step-start", step: 1, of: 2 },
  { type: "answer-delta", text: "It rose." },
  { type: "turn-end", result },
];

let directory: string;
let file: string;
let history: History;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sluice-quarantine-"));
  file = path.join(directory, "history.sqlite");
  history = openHistory({ file });
  history.conversations.ensure({ tenant: "a", id: "c", title: "x", at });
  history.turns.begin({ ...place, conversationId: "c", question: "What?", at });
  for (const [index, event] of events.entries()) history.events.append(place, { seq: index + 1, at, event });
  history.turns.end({ ...place, result, at });
});
afterEach(() => {
  history.close();
  rmSync(directory, { recursive: true });
});

/** Damages rows, as another program or a failing disk would. */
function change(sql: string, ...values: string[]): void {
  const database = new DatabaseSync(file);
  database.prepare(sql).run(...values);
  database.close();
}
const tooLong = "CAST(zeroblob(67108865) AS TEXT)";
const gapCodes = (): string[] => history.turns.get("a", "t1")!.result!.gaps.map(({ code }) => code);
const listed = (): unknown[] => history.quarantine.list().map(({ kind, name, reason, turnId }) => [kind, name, reason, turnId]);
const endEvent = (): TurnEvent => history.events.read(place).at(-1)!.event;

const bad = {
  "not JSON": ['\'{"type": "ans\'', "is not valid JSON"],
  "JSON of another form": ['\'{"type": "answer-delta"}\'', /^does not have the form of an? /],
  "a number": ["'7'", /^does not have the form of an? /],
  "too long": [tooLong, "has more than 67108864 bytes"],
} as const;

for (const [what, [sql, reason]] of Object.entries(bad)) {
  test(`puts aside an event that is ${what}, and its turn says so`, () => {
    change(`UPDATE events SET event = ${sql} WHERE seq = 2`);
    expect(history.events.read(place).map(({ seq, event }) => [seq, event.type])).toEqual([
      [1, "turn-start"],
      [3, "answer-delta"],
      [4, "turn-end"],
    ]);
    expect(listed()).toEqual([["event", "2", expect.stringMatching(reason), "t1"]]);
    const detail = "Stored entries of this turn could not be read and were put aside (event), so it is shown without them.";
    const gaps = [{ code: "entry_unreadable", severity: "major", detail }];
    expect(history.turns.get("a", "t1")).toMatchObject({ stopReason: "complete_answer", result: { ...result, gaps } });
    expect(endEvent()).toEqual({ type: "turn-end", result: { ...result, gaps } });
  });

  test(`replaces a result that is ${what} by what the events say`, () => {
    change(`UPDATE turns SET result = ${sql}`);
    expect(history.turns.listByConversation("a", "c").map(({ status, result: read }) => [status, read!.answer.split("\n")[0]])).toEqual([
      ["ended", "It rose."],
    ]);
    expect([listed(), gapCodes()]).toEqual([[["result", "t1", expect.stringMatching(reason), "t1"]], ["entry_unreadable"]]);
  });

  test(`puts aside a cell's run that is ${what}`, () => {
    history.cellRuns.add("a", { turnId: "t1" } as CellRun);
    change(`UPDATE cell_runs SET run = ${sql}`);
    expect([history.cellRuns.list("a", "t1"), listed(), gapCodes()]).toEqual([
      [],
      [["cell run", "1", expect.stringMatching(reason), "t1"]],
      ["entry_unreadable"],
    ]);
  });
}

test("replaces the last event of a turn if it cannot be read", () => {
  change("UPDATE events SET event = 'x' WHERE seq = 4");
  expect(
    history.events
      .read(place)
      .map(({ seq, event }) => [seq, event.type])
      .at(-1),
  ).toEqual([4, "turn-end"]);
  expect(endEvent()).toMatchObject({ result: { answer: "It rose.", gaps: [{ code: "entry_unreadable" }] } });
});

test("finds everything in one search: also rows without a hash, and turns in an unknown state", () => {
  history.references.addArtifact({ ...place, contentHash: "../../x", type: "png", bytes: 1 });
  history.references.addArtifact({ ...place, contentHash: "a".repeat(64), type: "exe", bytes: 1 });
  history.references.addArtifact({ ...place, contentHash: "b".repeat(64), type: "png", bytes: 1 });
  history.references.addDatasetBody({ ...place, sha256: "y" });
  const row = { alias: "x", record: "{}", sha256: "c".repeat(64), bytes: 1 };
  history.evidence.add({ tenant: "a", conversationId: "c" }, { ...row, turnId: "t1", record: "{" });
  history.evidence.add({ tenant: "a", conversationId: "c" }, { ...row, alias: "good", turnId: "t1" });
  expect(history.uploads.add({ tenant: "a", conversationId: "c", at }, { ...row, sha256: "z" }, () => true)).toBe(true);
  change("UPDATE turns SET status = 'dancing', stop_reason = 'music'");
  for (const _ of history.quarantine.isolateAll());
  expect(listed()).toEqual([
    ["result", "t1", "has an unknown status", "t1"],
    ["artifact", "../../x", "names no file", "t1"],
    ["artifact", "a".repeat(64), "names no file", "t1"],
    ["dataset", "y", "names no file", "t1"],
    ["evidence", "x", "is not valid JSON", "t1"],
    ["upload", "x", "has no hash of its content", "t1"],
  ]);
  expect(history.turns.get("a", "t1")).toMatchObject({ status: "ended", stopReason: "aborted" });
  expect([gapCodes(), history.references.filesInUse("a").artifacts, history.evidence.list("a", "c").length]).toEqual([
    ["entry_unreadable"],
    [`${"b".repeat(64)}.png`],
    1,
  ]);
  for (const _ of history.quarantine.isolateAll());
  expect([history.quarantine.count(), countQuarantined(file)]).toEqual([6, 6]);
});

test("ends the turns of a dead server whatever their events contain, and at any size", () => {
  change("UPDATE turns SET status = 'running', result = NULL, ended_at = NULL, stop_reason = NULL");
  change("DELETE FROM events WHERE seq = 4");
  change("UPDATE events SET event = 'x' WHERE seq = 2");
  for (const seq of ["5", "6", "7", "8", "9"])
    change("INSERT INTO events VALUES ('a', 't1', ?, '', CAST(zeroblob(60000000) AS TEXT))", seq);
  history.turns.begin({ tenant: "a", turnId: "t2", conversationId: "c", question: "And?", at });
  expect(history.recoverTurns(at)).toEqual(["t1", "t2"]);
  const turn = history.turns.get("a", "t1")!;
  expect([turn.status, turn.result!.gaps.map(({ code }) => code)]).toEqual(["ended", ["server_stopped", "entry_unreadable"]]);
  expect([listed().length, history.turns.get("a", "t2")!.status, endEvent().type]).toEqual([6, "ended", "turn-end"]);
  expect(listed()).toContainEqual(["event", "5", "is one of the events of a turn with more than 268435456 bytes", "t1"]);
});

test("stores a result that would be too large to be read again without its largest parts, and says so", () => {
  const artifacts = [{ kind: "chart", contentHash: "a".repeat(64), url: "/x", title: "x".repeat(68_000_000) }];
  history.turns.end({ ...place, result: { ...result, artifacts: artifacts as never }, at });
  const read = history.turns.get("a", "t1")!.result!;
  expect([read.answer, read.artifacts, read.gaps]).toEqual([
    "It rose.",
    [],
    [{ code: "result_too_large", severity: "major", detail: expect.stringContaining("more than 67108864 bytes") }],
  ]);
  expect(history.quarantine.count()).toBe(0);
});

test("keeps contents until they are deleted, with their conversation at the latest, and counts them", () => {
  const before = history.sizes.ofRows("a");
  change("UPDATE events SET event = ? WHERE seq = 2", "x".repeat(5000));
  history.events.read(place);
  expect(history.sizes.ofRows("a") - before).toBeGreaterThan(4900);
  expect([history.quarantine.clear(), history.quarantine.count(), gapCodes()]).toEqual([1, 0, ["entry_unreadable"]]);
  change("UPDATE events SET event = 'x' WHERE seq = 1");
  history.events.read(place);
  history.references.deleteConversation("a", "c", () => {});
  expect(history.quarantine.list()).toEqual([]);
});
