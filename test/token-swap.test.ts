import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDataFiles } from "../src/data/open-data-files.ts";
import { cell, generations, openHttpClient, textOf, type Generation, type TestClient } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";
import { openLoopbackModel } from "./fixtures/loopback-model.ts";
import { openTestServer, plainScript, type TestServer } from "./fixtures/open-test-server.ts";

describe("when the bearer token of an MCP connection changes to another subject", { timeout: 180_000 }, () => {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-swap-"));
  let opened: TestEndpoint;
  beforeAll(async () => {
    writeFileSync(path.join(directory, "regions.csv"), "region,sales\nnorth,1\n");
    const files = await openDataFiles({ paths: [directory], maxFileBytes: 1e6 });
    opened = await openMcpEndpoint({ parts: () => ({ files }) });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  /** A client whose token the test can change, with data and a variable of the first token. */
  async function openUsed(
    generation: Generation,
  ): Promise<{ client: TestClient; headers: Record<string, string>; handle: Record<string, string>; uri: string }> {
    const headers = { "x-token": "first" };
    const client = await openHttpClient(generation, opened.url, headers);
    const { session } = textOf<{ session?: string }>(await client.call("store_data", { name: "secret", data: [{ n: 41 }] }));
    const handle: Record<string, string> = session === undefined ? {} : { session };
    const ran = await client.call("code_interpreter", { ...cell("kept = secret[0]['n'] + 1\nset_result(kept)", ["secret"]), ...handle });
    expect(textOf(ran)).toMatchObject({ status: "ok", result: 42 });
    return { client, headers, handle, uri: session === undefined ? "sluice://data/secret" : `sluice://sessions/${session}/data/secret` };
  }
  const aliasesOf = async (client: TestClient, handle: object): Promise<string[]> =>
    textOf<{ data: { alias: string }[] }>(await client.call("list_data", { ...handle })).data.map(({ alias }) => alias);

  test.each(generations)("evidence and Python state of a client of %s are gone, files of the operator stay", async (generation) => {
    const { client, headers, handle, uri } = await openUsed(generation);
    expect((await client.read(uri)).contents).toHaveLength(1);
    headers["x-token"] = "second";
    await expect(client.read(uri)).rejects.toThrow(uri); // the first request of the new token
    const { data, sandbox_note } = textOf<{ data: { alias: string }[]; sandbox_note: string }>(await client.call("list_data", handle));
    expect(data.map(({ alias }) => alias)).toEqual(["regions"]);
    expect(sandbox_note).toContain("The bearer token changed to one of another account.");
    const state = textOf(await client.call("get_session_state", handle));
    expect(state).toMatchObject({ session_present: true, state_scope: "session", state_reason: "token_swapped" });
    const code = "set_result(['kept' in globals(), 'secret' in inputs, len(to_frame(regions))])";
    const ran = textOf(await client.call("code_interpreter", { ...cell(code, ["regions"]), ...handle }));
    expect(ran).toMatchObject({ status: "ok", result: [false, false, 1] });
    headers["x-token"] = "first";
    expect(await aliasesOf(client, handle)).toEqual(["regions"]);
    await client.close();
  });

  test.each(generations)("a client of %s that keeps its subject keeps its data and variables", async (generation) => {
    const { client, handle } = await openUsed(generation);
    const ran = textOf(await client.call("code_interpreter", { ...cell("set_result(kept)", ["secret"]), ...handle }));
    expect(ran).toMatchObject({ status: "ok", result: 42 });
    await client.close();
  });

  test.each(generations)("a cell of the first token that still runs is ended for a client of %s", async (generation) => {
    const { client, headers, handle } = await openUsed(generation);
    const began = Promise.withResolvers<void>();
    const endless = cell("print('running', flush=True)\nwhile True: pass", ["secret"]);
    const running = client.call(
      "code_interpreter",
      { ...endless, ...handle },
      { onprogress: ({ message }) => message === "running" && began.resolve() },
    );
    await began.promise;
    headers["x-token"] = "second";
    expect(await aliasesOf(client, handle)).toEqual(["regions"]);
    expect((await running).isError).toBe(true);
    await client.close();
  });

  test.each(generations)("pictures and charts that the first token drew can no longer be read by a client of %s", async (generation) => {
    const { client, headers, handle } = await openUsed(generation);
    const draw = cell('plt.plot([1, 2], label="kept")\nsave_figure("A line of what was kept")', ["secret"], ["image"]);
    const drawn = await client.call("code_interpreter", { ...draw, ...handle });
    const uri = /sluice:\/\/artifacts\/[0-9a-f]{64}/.exec(JSON.stringify(drawn))![0];
    expect((await client.read(uri)).contents).toHaveLength(1);
    headers["x-token"] = "second";
    await expect(client.read(uri)).rejects.toThrow(uri);
    await client.close();
  });

  test("requests of both tokens at the same time never see each other's data", async () => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const post = (body: object, more: Record<string, string>): Promise<Response> =>
      fetch(opened.url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: "2.0", ...body }) });
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const opening = await post({ id: 0, method: "initialize", params }, { "x-token": "first" });
    const session = { "mcp-session-id": opening.headers.get("mcp-session-id")! };
    await opening.text();
    const call = async (id: number, token: string, name: string, args: object): Promise<string> =>
      await (await post({ id, method: "tools/call", params: { name, arguments: args } }, { ...session, "x-token": token })).text();
    const calls = Array.from({ length: 60 }, async (_, at) =>
      at % 2 === 0
        ? (await call(at + 1, "first", "store_data", { name: `secret_${at}`, data: [1] }), "")
        : await call(at + 1, "second", "list_data", {}),
    );
    const lists = (await Promise.all(calls)).filter((text) => text !== "");
    expect(lists).toHaveLength(30);
    for (const list of lists) expect(list).toContain("regions");
    expect(lists.filter((text) => text.includes("secret_"))).toEqual([]);
  });
});

describe("when another token continues a conversation", { timeout: 240_000 }, () => {
  const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
  const secrets = { old: "old-token-of-ann-0123456789", rotated: "new-token-of-ann-0123456789", bob: "token-of-bob-0123456789" };
  const tokens = [
    { tenant: "team", sha256: sha256(secrets.old), subject: "ann" },
    { tenant: "team", sha256: sha256(secrets.rotated), subject: "ann" },
    { tenant: "team", sha256: sha256(secrets.bob) },
  ];
  let open: TestServer;
  beforeAll(async () => {
    open = await openTestServer({ script: plainScript, configuration: { auth: { tokens } }, token: secrets.old });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  async function ask(token: string, conversationId: string): Promise<void> {
    const body = JSON.stringify({ question: "What is the mean price?", conversationId, wait: true });
    const response = await open.request("/api/turns", { token, method: "POST", body, headers: { "content-type": "application/json" } });
    expect(response.status).toBe(200);
    await response.text();
  }
  async function aliasesOf(conversationId: string): Promise<string[]> {
    const { body } = await open.call<{ aliases: { alias: string }[] }>("GET", `/api/conversations/${conversationId}`);
    return body.aliases.map(({ alias }) => alias);
  }

  test("the same subject keeps its evidence, also after a restart; an unknown one starts without it", async () => {
    const id = "conversation-of-ann";
    await ask(secrets.old, id);
    const first = await aliasesOf(id);
    expect(first).toContain("get_prices_1");
    const upload = await open.request(`/api/conversations/${id}/files?name=regions.csv`, { method: "POST", body: "a,b\n1,2\n" });
    expect(upload.status).toBe(201);
    await open.restart();
    await ask(secrets.rotated, id);
    const second = await aliasesOf(id);
    expect(second).toEqual(expect.arrayContaining([...first, "get_prices_2"]));
    await open.restart();
    await ask(secrets.bob, id);
    expect(new Set(await aliasesOf(id))).toEqual(new Set([...first, "regions"]));
    const { body } = await open.call<{ messages: unknown[] }>("GET", `/api/conversations/${id}`);
    expect(body.messages.length).toBeGreaterThanOrEqual(6); // recorded answers stay
  });

  test("its cells cannot be run again for another subject, also before that one asks anything", async () => {
    const id = "cells-of-ann";
    await ask(secrets.old, id);
    const { body } = await open.call<{ turns: { turnId: string }[] }>("GET", `/api/turns?conversationId=${id}`);
    const rerun = async (token: string): Promise<unknown> => {
      const rerunRequest = JSON.stringify({ turnId: body.turns[0]!.turnId, cell: 1, code: "set_result(len(get_prices_1))" });
      const headers = { "content-type": "application/json" };
      const response = await open.request("/api/cells", { token, method: "POST", body: rerunRequest, headers });
      const { status, resultPreview, error } = (await response.json()) as Record<string, unknown>;
      return [response.status, status, resultPreview, (error as { code?: string } | null)?.code];
    };
    expect(await rerun(secrets.bob)).toEqual([403, undefined, undefined, "TURN_OF_OTHER_SUBJECT"]);
    expect(await rerun(secrets.rotated)).toEqual([200, "ok", "300", undefined]);
    expect(await aliasesOf(id)).toContain("get_prices_1");
  });

  test.each(["/api/turns", "/api/chat"])("the model of %s reads the questions and answers of one subject only", async (path) => {
    await using loopback = await openLoopbackModel([{ text: "The secret is 4711." }]);
    await using server = await openTestServer({
      configuration: {
        auth: { tokens },
        model: "openai-compatible:m",
        models: { "openai-compatible": { baseUrl: loopback.url } },
      },
      token: secrets.old,
    });
    /** Returns what the model has read for this question. */
    const read = async (token: string, question: string): Promise<string> => {
      const { length } = loopback.requests;
      const messages = [{ id: question, role: "user", parts: [{ type: "text", text: question }] }];
      const body = path === "/api/chat" ? { id: "shared", messages } : { question, conversationId: "shared", wait: true };
      const headers = { "content-type": "application/json" };
      const response = await server.request(path, { token, method: "POST", body: JSON.stringify(body), headers });
      expect([response.status, (await response.text()).includes("4711")]).toEqual([200, true]);
      return JSON.stringify(loopback.requests.slice(length));
    };
    await read(secrets.old, "Who is first?");
    expect(await read(secrets.rotated, "Who is second?")).toMatch(/Who is first\?.*4711/);
    const ofBob = await read(secrets.bob, "Who is third?");
    expect(ofBob).toContain("Who is third?");
    expect(ofBob).not.toMatch(/Who is first|Who is second/);
    const again = await read(secrets.bob, "Who is fourth?");
    expect(again).toContain("Who is third?");
    expect(again).not.toContain("Who is first");
    expect(await read(secrets.old, "Who is fifth?")).not.toMatch(/Who is (first|second|third|fourth)/);
  });
});
