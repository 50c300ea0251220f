import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createUploadStore } from "../../data/create-upload-store.ts";
import type { History } from "../../history/history.ts";
import { migrations, openHistory } from "../../history/open-history.ts";
import { recordedResultSchema } from "../../protocol/turn-result.ts";
import { createTenantStores, type TenantStores } from "./create-tenant-stores.ts";
import { migrateArtifacts } from "./migrate-artifacts.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const spec = { type: "line", xKey: "x", series: [{ key: "y" }, { key: "z" }] };
const data = [
  { x: 1, y: 2, z: 3 },
  { x: 2, y: 4, z: 6 },
];
const chartJson = JSON.stringify({ spec, data });
const place = (hash: string, type: string) => ({ schemaVersion: 1, contentHash: hash, url: `/artifacts/${hash}.${type}` });
const chart = { ...place(sha256(chartJson), "json"), kind: "chart", spec, data, title: "Chart" };
const lostChart = { ...place("c".repeat(64), "json"), kind: "chart", spec, data: data.slice(1) };
const image = { ...place("a".repeat(64), "png"), kind: "image", alt: "A line that rises", bytes: 9, width: 5, height: 4 };
const axesVersion1 = { xScale: "category", yScale: "linear", series: [{ type: "line", x: ["a", "b"], y: [1, 2] }], unread: [] };
const oldImage = { ...image, figure: { axes: [axesVersion1] } };
const axes = { x: { scale: "linear" }, y: { scale: "linear" }, series: [{ type: "line", x: [1], y: [2] }], unread: [] };
const newImage = { ...image, contentHash: "b".repeat(64), figure: { schemaVersion: 2, axes: [axes] } };
const oddImage = { ...image, contentHash: "d".repeat(64), figure: { unheard: "of" } };
const all = [chart, lostChart, oldImage, newImage, oddImage, { ...image, contentHash: "e".repeat(64) }];

const chartReference = {
  ...{ kind: "chart", contentHash: chart.contentHash, url: chart.url, bytes: chartJson.length },
  ...{ title: "Chart", alt: "line chart of y, z", summary: { series: 2, points: 4 } },
};

const cellRun = {
  ...{ runId: "r", turnId: "t", cell: 1, code: "1", at: "2026-01-01T00:00:00.000Z", status: "ok", error: null, stdout: "", stderr: "" },
  ...{ resultAlias: null, resultPreview: null, isResultCut: false, diagnostics: {} },
  timing: { queueMs: 0, startMs: 0, runMs: 1, totalMs: 1 },
  previous: { code: "0", resultAlias: null, artifacts: [] },
};

describe("migrateArtifacts", () => {
  let directory: string;
  let file: string;
  let history: History;
  let stores: TenantStores;
  let log: { event: string; fields: unknown }[];
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-migrate-"));
    file = path.join(directory, "history.sqlite");
    log = [];
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  function result(artifacts: readonly object[]): object {
    const ids = { schemaVersion: 1, turnId: "t", conversationId: "c", answer: "So.", artifacts, gaps: [] };
    const confidence = { level: "high", reason: "All calls succeeded." };
    const grounding = { toolCallAttemptCount: 0, toolCallSuccessCount: 0, toolCallFailureCount: 0, failures: [] };
    const usage = { steps: 1, inputTokens: 0, outputTokens: 0, wallMs: 1, sandboxMs: 0 };
    return { ...ids, outcome: { stopReason: "complete_answer" }, confidence, grounding, dataset: null, usage, trace: [] };
  }
  const events = [
    { type: "tool-start", step: 1, callId: "x", tool: "get", arguments: { contentHash: "of the model" } },
    { type: "artifact", artifact: chart, replaces: [] },
    { artifact: oldImage, replaces: ["f".repeat(64)], type: "artifact" },
    { type: "turn-end", result: result(all) },
  ];

  /** A history as the previous schema had it. */
  async function openOlder(write: (database: DatabaseSync) => void = () => {}): Promise<void> {
    const database = new DatabaseSync(file);
    const older = migrations.slice(
      0,
      migrations.findIndex((sql) => sql.includes("older_rows")),
    );
    for (const sql of older) database.exec(sql);
    database.exec(`PRAGMA user_version = ${older.length}`);
    const turn = database.prepare(
      "INSERT INTO turns (tenant, id, conversation_id, question, status, created_at, result) VALUES ('a', ?, 'c', '?', 'ended', '2026', ?)",
    );
    turn.run("t", JSON.stringify(result(all)));
    turn.run("plain", JSON.stringify(result([])));
    const insert = database.prepare("INSERT INTO events (tenant, turn_id, seq, at, event) VALUES ('a', 't', ?, '2026', ?)");
    for (const [index, event] of events.entries()) insert.run(index + 1, JSON.stringify(event));
    database
      .prepare("INSERT INTO cell_runs (tenant, turn_id, run) VALUES ('a', 't', ?)")
      .run(JSON.stringify({ ...cellRun, artifacts: [chart] }));
    write(database);
    database.close();
    open();
    await stores.artifacts.put({ bytes: Buffer.from(chartJson), type: "json" });
  }
  function open(): void {
    history = openHistory({ file });
    const uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    stores = createTenantStores({ directory, history, uploads })("a");
  }
  const note = (event: string, fields?: unknown): void => void log.push({ event, fields });
  const migrate = (storesOf: Parameters<typeof migrateArtifacts>[1] = () => stores): Promise<void> =>
    migrateArtifacts(history, storesOf, { info: note, error: note });
  function readRows(): Record<string, unknown>[] {
    using database = new DatabaseSync(file, { readOnly: true });
    return ["SELECT id, result AS row FROM turns", "SELECT seq, event AS row FROM events", "SELECT run AS row FROM cell_runs"].flatMap(
      (sql) => database.prepare(sql).all(),
    );
  }

  test("moves the data of all artifacts into the store, where nothing prunes them, and leaves references", async () => {
    await openOlder();
    await migrate();
    const { artifacts } = recordedResultSchema.parse(history.turns.get("a", "t")!.result);
    const [kept, stored, old, current, odd, bare] = artifacts;
    expect(kept).toEqual(chartReference);
    expect(await readJson(stored!.contentHash)).toEqual({ spec, data: data.slice(1) });
    expect(stored).toMatchObject({ alt: "line chart of y, z", summary: { series: 2, points: 2 }, bytes: expect.any(Number) });
    expect(old).toMatchObject({ contentHash: image.contentHash, url: image.url, alt: image.alt, summary: { series: 1, points: 2 } });
    expect(await readJson(old!.figureData!.contentHash)).toMatchObject({
      schemaVersion: 2,
      axes: [
        {
          x: {
            scale: "category",
            tickLabels: [
              { at: 0, text: "a" },
              { at: 1, text: "b" },
            ],
          },
          series: [{ x: [0, 1] }],
        },
      ],
    });
    expect(await readJson(current!.figureData!.contentHash)).toEqual(newImage.figure);
    expect([await readJson(odd!.figureData!.contentHash), odd!.summary]).toEqual([oddImage.figure, undefined]);
    expect([bare!.kind, bare!.figureData]).toEqual(["image", undefined]);
    const { bytes, url } = old!.figureData!;
    const written = (await stores.artifacts.get(old!.figureData!.contentHash, "json"))!;
    expect([written.length, url]).toEqual([bytes, `/artifacts/${old!.figureData!.contentHash}.json`]);

    const [first, ofChart, ofImage, end] = history.events.read({ tenant: "a", turnId: "t" }).map(({ event }) => event);
    expect(first).toEqual(events[0]);
    expect(ofChart).toEqual({ type: "artifact", artifact: chartReference, replaces: [] });
    expect(ofImage).toEqual({ type: "artifact", artifact: old, replaces: ["f".repeat(64)] });
    expect(end).toEqual({ type: "turn-end", result: history.turns.get("a", "t")!.result });
    expect(history.cellRuns.list("a", "t")).toEqual([{ ...cellRun, artifacts: [chartReference] }]);
    const referenced = [stored, old!.figureData, current!.figureData, odd!.figureData].map((one) => `${one!.contentHash}.json`);
    expect(history.references.filesInUse("a").artifacts).toEqual(referenced.toSorted());
    expect(log).toEqual([{ event: "artifacts_migrated", fields: { rows: 6 } }]);
  });

  const readJson = async (hash: string): Promise<unknown> =>
    JSON.parse(Buffer.from((await stores.artifacts.get(hash, "json"))!).toString());

  test("does nothing to rows that are migrated or were written since", async () => {
    await openOlder();
    await migrate();
    const rows = readRows();
    history.close();
    open();
    log = [];
    await migrate();
    expect([readRows(), log]).toEqual([rows, []]);
  });

  test("goes on where it was interrupted, at any artifact", async () => {
    await openOlder();
    let allowed = 0;
    const failing = (): Pick<TenantStores, "artifactsFor"> => ({
      artifactsFor: (turnId) => {
        const store = stores.artifactsFor(turnId);
        return {
          ...store,
          put: async (artifact) => {
            if (allowed === 0) throw new Error("the disk is full");
            allowed -= 1;
            return await store.put(artifact);
          },
        };
      },
    });
    const reads: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      allowed = round;
      await migrate(failing);
      reads.push(log.filter(({ event }) => event === "row_not_migrated").length);
      log = [];
      expect(history.turns.get("a", "t")!.result!.artifacts.map(({ contentHash }) => contentHash)).toHaveLength(all.length);
      history.close();
      open();
    }
    expect([reads[0], reads.at(-1)]).toEqual([3, expect.any(Number)]);
    await migrate();
    recordedResultSchema.parse(history.turns.get("a", "t")!.result);
    expect(log.map(({ event }) => event)).not.toContain("row_not_migrated");
  });

  test("leaves a row that is damaged as it is, and migrates the others", async () => {
    const damaged = '{"type":"artifact","artifact":{"contentHash":';
    const strange = JSON.stringify({ type: "artifact", artifact: { contentHash: "?", kind: "program" }, replaces: [] });
    await openOlder((database) => {
      const insert = database.prepare("INSERT INTO events (tenant, turn_id, seq, at, event) VALUES ('a', 'bad', ?, '2026', ?)");
      for (const [index, event] of [damaged, strange].entries()) insert.run(index + 1, event);
    });
    await migrate();
    recordedResultSchema.parse(history.turns.get("a", "t")!.result);
    expect(readRows().filter(({ row }) => row === damaged || row === strange)).toHaveLength(2);
    expect(log.map(({ event }) => event)).toEqual(["row_not_migrated", "row_not_migrated", "artifacts_migrated"]);
  });

  test("returns the space of a row that held more data than rows may have now", async () => {
    await openOlder((database) => {
      const large = `'{"schemaVersion":1,"kind":"image","contentHash":"${"a".repeat(64)}","url":"/x","alt":"A line","bytes":1,"width":1,"height":1,"figure":{"axes":"'
        || printf('%.*c', 500000, 'x') || '"}}'`;
      const list = Array.from({ length: 10 }, () => large).join(" || ',' || ");
      database.exec(`UPDATE turns SET result = '{"artifacts":[' || ${list} || ']}' WHERE id = 'plain'`);
    });
    await migrate();
    using database = new DatabaseSync(file, { readOnly: true });
    const { bytes, pages } = database
      .prepare("SELECT octet_length(result) AS bytes, (SELECT page_count FROM pragma_page_count()) AS pages FROM turns WHERE id = 'plain'")
      .get()!;
    expect(Number(bytes)).toBeLessThan(10_000);
    expect(Number(pages)).toBeLessThan(100);
  });
});
