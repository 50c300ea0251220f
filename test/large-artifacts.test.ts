import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ModelScript } from "../src/models/model-script.ts";
import { conversationSchema, type ConversationDocument } from "../src/protocol/http-conversations.ts";
import { turnDocumentSchema, type TurnDocument } from "../src/protocol/http-turns.ts";
import { defaultLimits } from "../src/sandbox/limits.ts";
import { forgeFrames } from "./escape/forge-frames.ts";
import { watchEventLoop } from "./fixtures/event-loop.ts";
import { openTestServer, readEvents, type ServerEvent, type TestServer } from "./fixtures/open-test-server.ts";

const MAX_ROW_BYTES = 200_000;
const CELLS = 3;
const CHARTS = 20;

/** Draws charts of just under 2 MB, each with other numbers. */
function drawCharts(cell: number): string {
  return `keys = [f"s{n}" for n in range(40)]
spec = {"type": "line", "xKey": "x", "series": [{"key": key} for key in keys], "xAxis": {"type": "number"}}
for chart in range(${CHARTS}):
    rows = [{"x": x, **{key: x * 1000003 + n * 101 + chart * 7 + ${cell} * 0.5 + 1e10 for n, key in enumerate(keys)}} for x in range(2400)]
    render_chart(spec, rows, title=f"Chart {chart} of cell ${cell}")
set_result(${cell})`;
}

const forgedArtifact = `{"type": "artifact", "cell": current_cell(), "kind": "image", "alt": "a line that rises"}`;
const largeFrames = `${forgeFrames}
for _ in range(10):
    send(frame(${forgedArtifact}, bytes(55_000_000)))`;
const largeData = `${forgeFrames}
part = bytes(750_000)
for _ in range(10):
    for _ in range(74):
        send(frame({"type": "chunk", "of": "data"}, part))
    send(frame(${forgedArtifact}))`;

function runCells(codes: readonly string[], expectedArtifacts: readonly string[]): ModelScript {
  const callContract = {
    operation: "derive_metric",
    reason: "The prices are asked for.",
    inputAliases: ["get_prices_1"],
    expectedArtifacts,
  };
  return {
    steps: [
      { toolCalls: [{ tool: "get_prices", input: { symbol: "A" } }] },
      ...codes.map((code) => ({ toolCalls: [{ tool: "code_interpreter", input: { code, postProcessingContract: callContract } }] })),
      { toolCalls: [{ tool: "final_response", input: { answer: "That is all." } }] },
    ],
    synthesis: "That is all.",
  };
}

/** The CPU time of reading and writing the data of all artifacts once, now and on this machine. */
function measureCopying(json: string, times: number): number {
  const before = process.threadCpuUsage();
  for (let at = 0; at < times; at += 1) JSON.stringify(JSON.parse(json));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

describe("a turn with more data than one message may have", { timeout: 900_000 }, () => {
  let directory: string;
  let open: TestServer;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-large-"));
  });
  afterEach(async () => {
    await open[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  interface Served {
    readonly turn: TurnDocument;
    readonly conversation: ConversationDocument;
    readonly events: readonly ServerEvent[];
    /** The longest block of the event loop, while the turn ran and was read. */
    readonly blockedMs: number;
  }

  /** Runs a turn over HTTP. After each of its events, the server must answer others. */
  async function serve(script: ModelScript): Promise<Served> {
    const configuration = {
      artifacts: { directory },
      limits: { sandbox: { cellTimeoutMs: 300_000 } },
      budgets: { wallMs: 900_000 },
    };
    open = await openTestServer({ script, configuration });
    const { body: begun } = await open.call<TurnDocument>("POST", "/api/turns", { question: "Go." });
    const eventLoop = watchEventLoop();
    const events: ServerEvent[] = [];
    for await (const event of readEvents(await open.request(`/api/turns/${begun.turnId}/events`))) {
      events.push(event);
      expect((await open.request("/healthz", { token: null })).status).toBe(200);
    }
    const { body: turn } = await open.call("GET", `/api/turns/${begun.turnId}`, undefined, turnDocumentSchema);
    const { body: conversation } = await open.call("GET", `/api/conversations/${turn.conversationId}`, undefined, conversationSchema);
    return { turn, conversation, events, blockedMs: eventLoop.stop() };
  }

  function largestRow(): number {
    using database = new DatabaseSync(path.join(directory, "history.sqlite"), { readOnly: true });
    const rows = database.prepare("SELECT octet_length(result) AS bytes FROM turns UNION ALL SELECT octet_length(event) FROM events");
    return Math.max(...rows.all().map(({ bytes }) => Number(bytes)));
  }

  test("with as many and as large charts as its limits allow, delays no other request and has small rows", async () => {
    const codes = Array.from({ length: CELLS }, (_, cell) => drawCharts(cell));
    const { turn, conversation, blockedMs } = await serve(runCells(codes, ["chart"]));
    const { artifacts } = turn.result!;
    expect([turn.stopReason, artifacts.length]).toEqual(["complete_answer", CELLS * CHARTS]);
    for (const { bytes, summary } of artifacts) {
      expect(bytes).toBeGreaterThan(0.85 * defaultLimits.artifactDataBytes);
      expect(summary).toEqual({ series: 40, points: 96_000 });
    }
    const drawn = conversation.messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "data-artifact");
    expect(drawn).toHaveLength(artifacts.length);
    expect(largestRow()).toBeLessThan(MAX_ROW_BYTES);
    const last = artifacts.at(-1)!;
    const stored = await (await open.request(new URL(last.url).pathname)).text();
    expect([stored.length, (JSON.parse(stored) as { data: unknown[] }).data.length]).toEqual([last.bytes, 2400]);
    expect(blockedMs).toBeLessThan(measureCopying(stored, CELLS * CHARTS));
  });

  test.each([
    { what: "frames of 55 MB", code: largeFrames, limit: "1,048,576" },
    { what: "figure data of 55 MB in chunks", code: largeData, limit: String(defaultLimits.artifactDataBytes) },
  ])("ten forged $what end only their cell, which names the limit", async ({ code, limit }) => {
    const { turn, conversation, events } = await serve(runCells([code, "set_result(2)"], []));
    const ends = events.filter(({ type, data }) => type === "tool-end" && data["tool"] === "code_interpreter");
    expect(ends.map(({ data }) => data["status"])).toEqual(["error", "ok"]);
    expect(ends[0]!.data["reason"]).toContain(limit);
    expect([turn.status, turn.result!.artifacts, turn.cells.map(({ status }) => status)]).toEqual(["ended", [], ["error", "ok"]]);
    expect(conversation.messages).toHaveLength(2);
    expect(largestRow()).toBeLessThan(MAX_ROW_BYTES);
  });
});
