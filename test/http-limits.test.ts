import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openServer } from "../src/server/http/open-server.ts";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import { endlessScript, openTestServer, plainScript, readEvents, shortScript, type TestServer } from "./fixtures/open-test-server.ts";

/** Downloads that need a sandbox. */
const downloads = ["csv", "parquet"].flatMap((as) => {
  const kind = as === "csv" ? "Csv" : "Parquet";
  return [
    { route: `downloadAlias${kind}`, path: `/api/conversations/none/tables/none.${as}` },
    { route: `getDataset${kind}`, path: `/data/none/tables/none.${as}` },
  ];
});

describe("limits for clients", { timeout: 240_000 }, () => {
  let open: TestServer;
  afterEach(() => open[Symbol.asyncDispose]());

  const chat = (id: string): object => ({ id, messages: [{ role: "user", parts: [{ type: "text", text: "Go." }] }] });
  const post = (path: string, body: unknown, signal?: AbortSignal): Promise<Response> =>
    open.request(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });

  /** Sends a request and does not read the response. */
  async function sendWithoutReading(
    method: string,
    path: string,
    { body = "", headers = {} }: { body?: string; headers?: Record<string, string> } = {},
  ): Promise<Socket> {
    const socket = connect(open.server.port, "127.0.0.1");
    socket.on("error", () => {});
    const all = {
      host: `127.0.0.1:${open.server.port}`,
      authorization: `Bearer ${open.server.tokens.generated}`,
      "content-length": String(body.length),
      ...headers,
    };
    socket.write(
      `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join("")}\r\n${body}`,
    );
    socket.pause();
    return socket;
  }
  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const statusOf = async (turnId: string): Promise<TurnDocument> => (await open.call<TurnDocument>("GET", `/api/turns/${turnId}`)).body;

  test("answers 429 with a time to retry when the queue of turns is full", async () => {
    open = await openTestServer({
      script: endlessScript,
      configuration: { server: { maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 } },
    });
    const first = (await (await post("/api/turns", { question: "One." })).json()) as TurnDocument;
    const waiting = post("/api/turns", { question: "Two." });
    await until(() => open.server.parts.turnLimiter.waiting === 1);
    const refused = await post("/api/turns", { question: "Three." });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "15"]);
    expect(await refused.json()).toEqual({
      error: {
        code: "TOO_MANY_TURNS",
        message: "Too many turns are running: the queue is full.",
        hint: "Try again later. The limits are server.maxTurns, maxTurnsPerClient and maxQueuedPerClient in the configuration.",
      },
    });
    expect((await post("/api/chat", chat("c"))).status).toBe(429);
    await post(`/api/turns/${first.turnId}/stop`, {});
    const second = (await (await waiting).json()) as TurnDocument;
    expect(second.question).toBe("Two.");
    await post(`/api/turns/${second.turnId}/stop`, {});
    await until(async () => (await statusOf(second.turnId)).status === "ended");
    expect(open.server.parts.turnLimiter.taken).toBe(0);
  });

  test("answers 429 when a client has too many downloads that need a sandbox", async () => {
    open = await openTestServer();
    for (const { route, path } of downloads) {
      const places = Array.from({ length: 64 }, () => open.server.parts.workLimiter.begin({ tenant: "local", route }));
      const refused = await open.request(path);
      expect([path, refused.status, ((await refused.json()) as { error: object }).error]).toMatchObject([
        path,
        429,
        { code: "TOO_MANY_CALLS" },
      ]);
      places.pop()!();
      expect([path, (await open.request(path)).status]).toEqual([path, 404]);
      for (const leave of places) leave();
    }
  });

  test("removes a turn from the queue when its client disconnects", async () => {
    open = await openTestServer({ script: endlessScript, configuration: { server: { maxTurns: 1 } } });
    const first = (await (await post("/api/turns", { question: "One." })).json()) as TurnDocument;
    const client = new AbortController();
    const waiting = post("/api/chat", chat("c"), client.signal).catch(() => null);
    await until(() => open.server.parts.turnLimiter.waiting === 1);
    client.abort();
    await waiting;
    await until(() => open.server.parts.turnLimiter.waiting === 0);
    await post(`/api/turns/${first.turnId}/stop`, {});
    await until(async () => (await statusOf(first.turnId)).status === "ended");
    expect((await open.call<{ conversations: unknown[] }>("GET", "/api/conversations")).body.conversations).toHaveLength(1);
  });

  test("stops a chat turn whose client has disconnected, and frees its sandbox", async () => {
    open = await openTestServer({ script: endlessScript, unattendedMs: 200, configuration: { sandbox: { poolSize: 0 } } });
    const client = new AbortController();
    const response = await post("/api/chat", chat("vanished"), client.signal);
    let turnId = "";
    for await (const { data } of readEvents(response)) {
      if (data["type"] === "start") turnId = String(data["messageId"]);
      if (data["type"] === "data-cell-output") break;
    }
    client.abort();
    await until(async () => (await statusOf(turnId)).status === "ended");
    expect((await statusOf(turnId)).stopReason).toBe("aborted");
    await until(() => open.server.parts.configured.runtime.gate.taken === 0);
  });

  test("disconnects a client that does not read its response, and one that does not send its request", async () => {
    open = await openTestServer({ slowClients: { bytesPerSecond: 1024, windowMs: 300 } });
    const data = "x".repeat(64);
    const rows = `a\n${`${data}\n`.repeat(400_000)}`; // more than fits in the buffers of both sockets
    const taken = await open.request("/api/conversations/slow/files?name=big.csv", { method: "POST", body: rows });
    expect(taken.status).toBe(201);
    const reader = await sendWithoutReading("GET", "/api/conversations/slow/tables/big.csv");
    const sender = await sendWithoutReading("POST", "/api/turns", {
      headers: { "content-type": "application/json", "content-length": "500" },
      body: "",
    });
    await until(() => open.server.parts.metrics.slowClients.values()[""] === 2);
    for (const socket of [reader, sender]) socket.destroy();
    expect(open.log.filter((line) => line.includes("slow_client_cut"))).toHaveLength(2);
    expect((await open.request("/healthz")).status).toBe(200);
  });

  test("does not disconnect a listener that reads but gets few events", async () => {
    open = await openTestServer({ script: endlessScript, unattendedMs: 500, slowClients: { bytesPerSecond: 1024, windowMs: 100 } });
    const turn = (await (await post("/api/turns", { question: "Go." })).json()) as TurnDocument;
    const events = readEvents(await open.request(`/api/turns/${turn.turnId}/events`));
    for await (const { type } of events) if (type === "cell-output") break;
    const again = readEvents(await open.request(`/api/turns/${turn.turnId}/events`));
    const idle = setTimeout(() => void post(`/api/turns/${turn.turnId}/stop`, {}), 1500); // fifteen windows without an event
    let last = "";
    for await (const { type } of again) last = type;
    clearTimeout(idle);
    expect([last, open.server.parts.metrics.slowClients.values()]).toEqual(["turn-end", {}]);
  });

  test("waits for running turns when it closes, and refuses a second server on the same data", async () => {
    open = await openTestServer({ script: shortScript });
    const loaded = { configuration: open.server.parts.configured.configuration, path: "x", origins: {} };
    const { log } = open.server.parts;
    await expect(openServer({ loaded, environment: process.env, host: "127.0.0.1", port: 0, log })).rejects.toThrow(
      `Another server uses the data directory ${loaded.configuration.artifacts.directory}.`,
    );
    const patient = { script: plainScript, configuration: { server: { drainMs: 120_000 } } };
    await open.restart(patient);
    const turn = (await (await post("/api/turns", { question: "Go." })).json()) as TurnDocument;
    await open.restart(patient); // closes the server during the turn
    expect(await statusOf(turn.turnId)).toMatchObject({ status: "ended", stopReason: "complete_answer" });
  });

  test("refuses new work while it stops, and still answers other requests", async () => {
    open = await openTestServer({ script: endlessScript, configuration: { server: { drainMs: 240_000, maxTurns: 1 } } });
    const turn = (await (await post("/api/turns", { question: "Go." })).json()) as TurnDocument;
    const waiting = post("/api/turns", { question: "Wait." });
    await until(() => open.server.parts.turnLimiter.waiting === 1);
    const closed = open.server.close();
    const stopping = {
      code: "SERVER_STOPPING",
      message: "The server is stopping and accepts no new work.",
      hint: "Try again when the server is running again.",
    };
    for (const [path, body] of [
      ["/api/turns", { question: "More." }],
      ["/api/chat", chat("more")],
      ["/api/cells", { turnId: turn.turnId, cell: 1, code: "1" }],
      ["/mcp", { jsonrpc: "2.0", id: 1, method: "ping" }],
      ["/api/conversations/more/files?name=x.csv", {}],
    ] as const) {
      const refused = await post(path, body);
      expect([path, refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
        path,
        503,
        "10",
        { error: stopping },
      ]);
    }
    for (const download of downloads) expect([download, (await open.request(download.path)).status]).toEqual([download, 503]);
    const ready = await open.request("/readyz");
    expect([ready.status, ((await ready.json()) as { checks: object[] }).checks.at(-1)]).toEqual([
      503,
      { name: "server", ok: false, detail: "The server is stopping." },
    ]);
    expect([(await statusOf(turn.turnId)).status, (await open.request("/healthz")).status]).toEqual(["running", 200]);
    await post(`/api/turns/${turn.turnId}/stop`, {});
    expect((await waiting).status).toBe(503);
    await closed;
  });
});
