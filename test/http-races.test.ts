import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import { endlessScript, openTestServer, plainScript, readEvents, type TestServer } from "./fixtures/open-test-server.ts";

/** Requests that change a conversation while one of its turns runs or is queued. */
describe("concurrent use of a conversation", { timeout: 240_000 }, () => {
  const oneAtATime = { script: endlessScript, configuration: { server: { maxTurns: 1 } } };
  let open: TestServer;
  beforeAll(async () => {
    open = await openTestServer({ script: plainScript });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  async function ask(body: object, headers: Record<string, string> = {}): Promise<{ status: number; turn: TurnDocument }> {
    const response = await open.request("/api/turns", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, turn: (await response.json()) as TurnDocument };
  }
  async function follow(turnId: string, until = "turn-end"): Promise<void> {
    for await (const { type } of readEvents(await open.request(`/api/turns/${turnId}/events`))) if (type === until) break;
  }
  async function untilOneWaits(): Promise<void> {
    while (open.server.parts.turnLimiter.waiting === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  test("allows one turn at a time, queued or running, also after an older turn was deleted", async () => {
    const { turn: old } = await ask({ question: "First.", conversationId: "one", wait: true });
    await ask({ question: "Second.", conversationId: "one", wait: true });
    await open.restart(oneAtATime);
    const { turn: other } = await ask({ question: "Elsewhere." });
    const again = (): Promise<Response> =>
      open.request("/api/chat", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ id: "one", messages: [], trigger: "regenerate-message" }),
      });
    const waiting = again();
    await untilOneWaits();
    const refused = await again(); // while the first one is queued
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([409, "TURN_RUNNING"]);
    await open.call("POST", `/api/turns/${other.turnId}/stop`);
    let running = "";
    for await (const { data } of readEvents(await waiting)) {
      if (data["type"] === "start") running = String(data["messageId"]);
      if (data["type"] === "data-cell-output") break;
    }
    expect((await open.call("DELETE", `/api/turns/${old.turnId}`)).status).toBe(204);
    expect((await ask({ question: "Third.", conversationId: "one" })).status).toBe(409); // the running turn is still known
    await open.call("POST", `/api/turns/${running}/stop`);
    await follow(running);
    const { body } = await open.call<{ aliases: { alias: string; turnId: string }[] }>("GET", "/api/conversations/one/aliases");
    const aliases = body.aliases.filter(({ turnId }) => turnId === running).map(({ alias }) => alias);
    expect(aliases).toEqual(["get_prices_3"]); // its evidence was not lost, and its alias was not used twice
    await open.call("DELETE", "/api/conversations/one");
  });

  test("starts one turn for an Idempotency-Key, also if the first of several requests failed", async () => {
    const { turn: running } = await ask({ question: "Go." });
    const key = { "idempotency-key": "again" };
    const client = new AbortController();
    const body = JSON.stringify({ question: "Once?" });
    const headers = { "content-type": "application/json", ...key };
    const first = open.request("/api/turns", { method: "POST", headers, body, signal: client.signal }).catch(() => null);
    await untilOneWaits();
    const retries = Promise.all([ask({ question: "Once?" }, key), ask({ question: "Once?" }, key)]);
    await open.request("/healthz"); // sent after them, so they have arrived
    client.abort();
    await first;
    await open.call("POST", `/api/turns/${running.turnId}/stop`);
    const [second, third] = await retries;
    expect([second.status, third.status, third.turn.turnId]).toEqual([202, 202, second.turn.turnId]);
    await open.call("POST", `/api/turns/${second.turn.turnId}/stop`);
    await follow(second.turn.turnId);
  });

  test("ends running and queued turns when their conversation is deleted", async () => {
    const { turn } = await ask({ question: "Go.", conversationId: "ended" });
    await follow(turn.turnId, "cell-output");
    const waiting = open.call<{ error: { code: string } }>("POST", "/api/turns", { question: "Wait.", conversationId: "queued" });
    await untilOneWaits();
    await open.request("/api/conversations/queued/files?name=a.csv", { method: "POST", body: "a\n1\n" });
    expect((await open.call("DELETE", "/api/conversations/queued")).status).toBe(204);
    const refused = await waiting;
    expect([refused.status, refused.body.error.code]).toEqual([409, "CONVERSATION_REMOVED"]);
    expect((await open.call("DELETE", "/api/conversations/ended")).status).toBe(204);
    expect((await open.request(`/api/turns/${turn.turnId}`)).status).toBe(404);
    expect((await open.call<{ turns: unknown[] }>("GET", "/api/turns?status=running")).body.turns).toEqual([]);
    for (const id of ["queued", "ended"]) expect((await open.request(`/api/conversations/${id}`)).status).toBe(404);
  });
});
