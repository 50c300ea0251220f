import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { InterpreterTurn } from "../src/interpreter/interpreter-turn.ts";
import type { ModelScript } from "../src/models/model-script.ts";
import { turnEventSchema } from "../src/protocol/turn-events.ts";
import { turnDocumentSchema, type TurnDocument } from "../src/protocol/http-turns.ts";
import { readFigure } from "../src/protocol/read-figure.ts";
import type { CellRun } from "../src/protocol/http-cells.ts";
import {
  endlessScript,
  meanCode,
  openTestServer,
  plainScript,
  readEvents,
  type ServerEvent,
  type TestServer,
} from "./fixtures/open-test-server.ts";

interface Asked {
  readonly status: number;
  readonly turn: TurnDocument;
}

describe("/api/turns", { timeout: 240_000 }, () => {
  let open: TestServer;
  beforeAll(async () => {
    open = await openTestServer();
  });
  afterAll(() => open[Symbol.asyncDispose]());

  async function ask(body: object, headers: Record<string, string> = {}): Promise<Asked> {
    const response = await open.request("/api/turns", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, turn: (await response.json()) as TurnDocument };
  }
  async function follow(turnId: string, { after, until }: { after?: number; until?: string } = {}): Promise<ServerEvent[]> {
    const headers: Record<string, string> = {
      accept: "text/event-stream",
      ...(after === undefined ? {} : { "last-event-id": String(after) }),
    };
    const seen: ServerEvent[] = [];
    for await (const event of readEvents(await open.request(`/api/turns/${turnId}`, { headers }))) {
      seen.push(event);
      if (event.type === until) break;
    }
    return seen;
  }

  test("starts a turn at once, streams its events with numbers, and returns it with absolute URLs", async () => {
    const { status, turn } = await ask({ question: "What is the mean?" });
    expect([status, turn.status, turn.result]).toEqual([202, "running", null]);
    const events = await follow(turn.turnId);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    for (const { type, data } of events) {
      const { at, ...event } = data;
      expect([type, at, turnEventSchema.safeParse(event).error]).toEqual([type, expect.stringMatching(/Z$/), undefined]);
    }
    const { body } = await open.call<TurnDocument>("GET", `/api/turns/${turn.turnId}`);
    turnDocumentSchema.parse(body);
    expect(body).toMatchObject({ status: "ended", stopReason: "complete_answer", lastEventId: events.length, pendingApprovals: [] });
    expect(body.result!.artifacts[0]!.url).toBe(`${open.url}/artifacts/${body.result!.artifacts[0]!.contentHash}.png`);
    const { kind, summary, figureData } = body.result!.artifacts[0]!;
    expect([kind, summary, Object.keys(body.result!.artifacts[0]!)]).toEqual([
      "image",
      { series: 1, points: 300 },
      expect.not.arrayContaining(["figure"]),
    ]);
    expect(figureData!.url).toBe(`${open.url}/artifacts/${figureData!.contentHash}.json`);
    const stored = await (await open.request(new URL(figureData!.url).pathname)).text();
    expect([readFigure(JSON.parse(stored)).axes[0]!.series[0]!.x.length, stored.length]).toEqual([300, figureData!.bytes]);
    expect(body.result!.dataset!.publicDataUrl).toBe(`${open.url}/data/${body.result!.dataset!.datasetId}.json`);
    expect(body.cells).toEqual([
      {
        cell: 1,
        callId: "call-1-0",
        step: 2,
        tool: "code_interpreter",
        code: meanCode,
        inputAliases: ["get_prices_1"],
        expectedArtifacts: ["image"],
        reason: "The mean price is asked for.",
        status: "ok",
        resultAlias: "result_1",
        artifacts: [body.result!.artifacts[0]!.contentHash],
        runs: [],
      },
    ]);

    const half = Math.floor(events.length / 2);
    expect(await follow(turn.turnId, { after: half })).toEqual(events.slice(half));
    expect(await follow(turn.turnId, { after: events.length })).toEqual([]);
  });

  test("waits for the end of a turn on request, and lists turns page by page, latest first", async () => {
    const { status, turn } = await ask({ question: "Wait for it.", conversationId: "waited", wait: true });
    expect([status, turn.status, turn.stopReason]).toEqual([200, "ended", "complete_answer"]);
    const first = await open.call<{ turns: { turnId: string }[]; next: string }>("GET", "/api/turns?limit=1");
    expect(first.body.turns.map(({ turnId }) => turnId)).toEqual([turn.turnId]);
    const second = await open.call<{ turns: { question: string }[]; next: string | null }>(
      "GET",
      `/api/turns?limit=1&before=${first.body.next}`,
    );
    expect([second.body.turns.map(({ question }) => question), second.body.next]).toEqual([["What is the mean?"], null]);
    const ofConversation = await open.call<{ turns: unknown[] }>("GET", "/api/turns?conversationId=waited&status=ended");
    expect(ofConversation.body.turns).toHaveLength(1);
  });

  test("refuses a time zone that does not exist", async () => {
    const { status, body } = await open.call<{ error: { code: string; message: string } }>("POST", "/api/turns", {
      question: "What is the mean?",
      timeZone: "Mars/Olympus",
    });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain("must be an IANA time zone");
  });

  test("logs the probes of cells and of backend calls as events", async () => {
    const { turn } = await ask({ question: "Log it.", wait: true, timeZone: "Europe/Berlin" });
    const logged = open.log.map((line) => JSON.parse(line) as { event: string; level: string; probe?: string; turnId?: string });
    expect(logged.filter(({ turnId }) => turnId === turn.turnId)).toMatchObject([
      { event: "python_call_start", level: "info", probe: "python-sandbox-latency-probe" },
      { event: "python_call_success", level: "info", probe: "python-sandbox-latency-probe" },
    ]);
    expect(logged).toContainEqual(expect.objectContaining({ event: "mcp_call_success", level: "info", probe: "mcp-latency-probe" }));
  });

  test("starts one turn for requests with the same Idempotency-Key", async () => {
    const key = { "idempotency-key": "a-key" };
    const [first, second] = await Promise.all([ask({ question: "Once?" }, key), ask({ question: "Once?" }, key)]);
    expect(second.turn.turnId).toBe(first.turn.turnId);
    await follow(first.turn.turnId);
    expect((await ask({ question: "Once?" }, key)).status).toBe(200);
    const other = await open.request("/api/turns", {
      method: "POST",
      headers: { "content-type": "application/json", ...key },
      body: JSON.stringify({ question: "Something else?" }),
    });
    expect([other.status, ((await other.json()) as { error: { code: string } }).error.code]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
  });

  test("reruns a cell from the state in which it began, and keeps its first outcome", async () => {
    const { turn } = await ask({ question: "A cell to edit.", wait: true });
    const code = meanCode.replace(".mean()})", '.mean(), "largest": frame["price"].max()})').replace("daily prices", "the daily prices");
    const { status, body: run } = await open.call<CellRun>("POST", "/api/cells", { turnId: turn.turnId, cell: 1, code });
    expect(status).toBe(200);
    expect(run).toMatchObject({
      turnId: turn.turnId,
      cell: 1,
      code,
      status: "ok",
      error: null,
      stdout: "rows 300\n",
      resultAlias: "result_2",
      previous: { code: meanCode, resultAlias: "result_1", artifacts: turn.cells[0]!.artifacts },
    });
    expect(JSON.parse(run.resultPreview!)).toMatchObject({ largest: 106 });
    expect(run.artifacts).toHaveLength(1);
    const after = await open.call<TurnDocument>("GET", `/api/turns/${turn.turnId}`);
    expect(after.body.cells[0]!.runs).toEqual([run]);
    expect(after.body.result).toEqual(turn.result);
    expect((await open.request(run.artifacts[0]!.url)).status).toBe(200);

    const failed = await open.call<CellRun>("POST", "/api/cells", { turnId: turn.turnId, cell: 1, code: "print(1)\n1 / 0\n" });
    expect([failed.status, failed.body.status, failed.body.error?.type, failed.body.error?.line]).toEqual([
      200,
      "python_error",
      "ZeroDivisionError",
      2,
    ]);
    const refused = await open.call<{ error: { code: string } }>("POST", "/api/cells", {
      turnId: turn.turnId,
      cell: 1,
      code: "for",
    });
    expect([refused.status, refused.body.error.code]).toEqual([422, "PYTHON_SYNTAX_ERROR"]);
    const again = open.call<{ error: { code: string } }>("POST", "/api/cells", { turnId: turn.turnId, cell: 1, code: "while True: pass" });
    while (open.server.parts.turnLimiter.taken === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const busy = await open.call<{ error: { message: string } }>("DELETE", `/api/turns/${turn.turnId}`);
    expect([busy.status, busy.body.error.message]).toEqual([409, "A cell of the turn is being rerun."]);
    const missing = await open.call<{ error: { message: string } }>("POST", "/api/cells", { turnId: turn.turnId, cell: 2, code: "1" });
    expect([missing.status, missing.body.error.message]).toEqual([404, "The turn has no cell 2 (cells: 1)."]);
    expect((await open.call("DELETE", `/api/conversations/${turn.conversationId}`)).status).toBe(204); // stops the cell first
    expect([(await again).status, (await again).body.error.code]).toEqual([409, "CONVERSATION_REMOVED"]);
    await expect.poll(() => open.server.parts.turnLimiter.taken, { timeout: 60_000 }).toBe(0);
  });

  test("keeps the sandbox of a rerun cell until the cell has ended", async () => {
    const cell = (code: string): object => {
      const postProcessingContract = {
        operation: "aggregate",
        reason: "Asked for.",
        inputAliases: ["get_prices_1"],
        expectedArtifacts: [],
      };
      return { toolCalls: [{ tool: "code_interpreter", input: { code, postProcessingContract } }] };
    };
    const [fetch, , answer] = plainScript.steps;
    const steps = [fetch, cell("kept = len(get_prices_1)"), cell("kept + 1"), answer] as ModelScript["steps"];
    await open.restart({ script: { steps, synthesis: "Done." }, configuration: { limits: { sandbox: { cellTimeoutMs: 5_000 } } } });
    const { turn } = await ask({ question: "Two cells.", wait: true });
    const { parts } = open.server;
    const created = vi.spyOn(parts.configured.runtime, "createTurn");
    const starts = (): number => parts.metrics.probes.filter(({ line }) => line.includes("python_call_start")).length;
    const before = starts();
    const running = open.call<CellRun>("POST", "/api/cells", { turnId: turn.turnId, cell: 2, code: "while True: pass" });
    await expect.poll(starts, { timeout: 60_000 }).toBe(before + 2);
    const { sandbox } = created.mock.results.map(({ value }) => value as InterpreterTurn).find((one) => one.sandbox !== null)!;
    await (await sandbox!.cellSession).release();
    expect((await running).body.error?.type).toBe("Timeout");
    await open.restart();
  });

  test("deletes a turn with the files that only it uses", async () => {
    const first = await ask({ question: "First.", conversationId: "removed", wait: true });
    const second = await ask({ question: "Second.", conversationId: "removed", wait: true });
    const [kept, deleted] = [second, first].map(({ turn }) => turn.result!);
    expect(deleted!.artifacts[0]!.contentHash).toBe(kept!.artifacts[0]!.contentHash); // the same image
    expect((await open.call("DELETE", `/api/turns/${first.turn.turnId}`)).status).toBe(204);
    expect((await open.request(`/api/turns/${first.turn.turnId}`)).status).toBe(404);
    expect((await open.request(deleted!.dataset!.publicDataUrl)).status).toBe(404);
    expect((await open.request(kept!.artifacts[0]!.url)).status).toBe(200);
    expect((await open.request(kept!.dataset!.publicDataUrl)).status).toBe(200);
    const aliases = await open.call<{ aliases: { alias: string }[] }>("GET", "/api/conversations/removed/aliases");
    // get_prices_1 stays because the code of the second turn uses it; only the first turn used result_1.
    expect(aliases.body.aliases.map(({ alias }) => alias)).toEqual(["get_prices_1", "get_prices_2", "result_2"]);
    expect((await open.call("DELETE", "/api/conversations/removed")).status).toBe(204);
    expect((await open.request("/api/conversations/removed")).status).toBe(404);
    expect((await open.request(kept!.dataset!.publicDataUrl)).status).toBe(404);
  });

  test("waits for approval of a call that may change something", async () => {
    const steps = [
      { toolCalls: [{ tool: "delete_note", input: { symbol: "A" } }] },
      { toolCalls: [{ tool: "delete_note", input: { symbol: "B" } }] },
      { toolCalls: [{ tool: "final_response", input: { answer: "Done." } }] },
    ] satisfies ModelScript["steps"];
    await open.restart({ script: { steps, synthesis: "Done." } });
    const { turn } = await ask({ question: "Delete both." });
    const answers: unknown[] = [];
    for await (const { type, data } of readEvents(await open.request(`/api/turns/${turn.turnId}/events`))) {
      if (type === "tool-end" && data["tool"] === "delete_note") answers.push(data["status"]);
      if (type !== "approval-request") continue;
      const { body } = await open.call<TurnDocument>("GET", `/api/turns/${turn.turnId}`);
      expect(body.pendingApprovals).toMatchObject([{ approvalId: data["approvalId"], tool: "delete_note", server: "notes" }]);
      const path = `/api/turns/${turn.turnId}/approvals/${String(data["approvalId"])}`;
      const approved = (data["arguments"] as { symbol: string }).symbol === "A";
      const answer = approved ? "approved" : "refused";
      expect(await open.call("POST", path, { approved })).toEqual({ status: 200, body: { approvalId: data["approvalId"], answer } });
      const again = await open.call<{ error: { code: string } }>("POST", path, { approved });
      expect([again.status, again.body.error.code]).toEqual([409, "APPROVAL_OVER"]);
    }
    expect(answers).toEqual(["ok", "refused"]);
    const unknown = await open.call<{ error: { code: string } }>("POST", `/api/turns/${turn.turnId}/approvals/none`, { approved: true });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, "APPROVAL_NOT_FOUND"]);
  });

  test("stops a turn in the middle of a cell, and frees its sandbox", async () => {
    await open.restart({ script: endlessScript });
    const { turn } = await ask({ question: "Go." });
    await follow(turn.turnId, { until: "cell-output" });
    expect(await open.call("POST", `/api/turns/${turn.turnId}/stop`)).toEqual({
      status: 202,
      body: { turnId: turn.turnId, status: "running" },
    });
    const events = await follow(turn.turnId);
    expect(events.at(-1)!.data["result"]).toMatchObject({ outcome: { stopReason: "aborted" } });
    expect(await open.call("POST", `/api/turns/${turn.turnId}/stop`)).toEqual({
      status: 202,
      body: { turnId: turn.turnId, status: "ended" },
    });
    expect((await open.call("DELETE", `/api/turns/${turn.turnId}`)).status).toBe(204);
  });

  test("removes remote images from answers and shows the addresses of links", async () => {
    const synthesis =
      'See ![a photo](https://evil.example/a.png?x=1) and [the bank](https://evil.example/login "Bank").\n\nAlso <img src="https://evil.example/b.png"> and [x][ref].\n\n[ref]: https://evil.example/c\n';
    await open.restart({ script: { ...plainScript, steps: plainScript.steps.slice(-1), plan: {}, synthesis } });
    const { turn } = await ask({ question: "Links?", wait: true });
    expect(turn.result!.answer).toBe(
      'See a photo and the bank (<https://evil.example/login>).\n\nAlso &lt;img src="<https://evil.example/b.png%22%3E> and [x][ref].\n\nref: <https://evil.example/c>\n',
    );
    const events = await follow(turn.turnId);
    expect(events.flatMap(({ type, data }) => (type === "answer-delta" ? [data["text"]] : [])).join("")).toBe(turn.result!.answer);
  });
});
