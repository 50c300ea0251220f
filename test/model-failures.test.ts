import { afterAll, describe, expect, test } from "vitest";
import { openModel } from "../src/models/open-model.ts";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import type { ConversationList } from "../src/protocol/http-conversations.ts";
import { turnResultSchema, type TurnResult } from "../src/protocol/turn-result.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { openLoopbackProviders, type ProviderReply } from "./fixtures/loopback-providers.ts";
import { openTestServer } from "./fixtures/open-test-server.ts";
import { openTestRuntime } from "./test-runtime.ts";
import { testTurn, type TestTurn } from "./turn-fixtures.ts";

const runtime = openTestRuntime("gvisor");
afterAll(() => runtime.close());

const KEY = "sk-secret0123456789";
const models = ["openai:m", "anthropic:m", "openai-compatible:m"] as const;

/** Answers every request with this status. SDKs repeat some; the header keeps them from waiting long. */
const status =
  (code: number, message = "AI_ProviderError: wrong", headers: Record<string, string> = { "retry-after": "1" }): ProviderReply =>
  (response) =>
    void response
      .writeHead(code, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ type: "error", error: { message: `${message} ${KEY}`, type: "x" } }));

async function ask(name: string, reply: ProviderReply, options: object = {}): Promise<TestTurn & { result: TurnResult; requests: number }> {
  await using provider = await openLoopbackProviders(reply);
  const environment = {
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: KEY,
    ANTHROPIC_BASE_URL: provider.url,
    OPENAI_COMPATIBLE_BASE_URL: provider.url,
    OPENAI_COMPATIBLE_API_KEY: KEY,
  };
  const turn = testTurn({ question: "Plot it.", model: await openModel(name, { configuration: {}, environment }), ...options });
  const result = await runTurn(runtime, turn.request);
  return { ...turn, result: turnResultSchema.parse(result), requests: provider.requests.length };
}

/** The failure is stated once: it is the answer, and the only gap. */
function expectOnce({ result, of }: TestTurn & { result: TurnResult }, name: string): string {
  const { outcome, answer, gaps, confidence } = result;
  const { message, hint } = outcome.error!;
  expect([outcome.stopReason, result.model]).toEqual(["model_error", name]);
  expect(answer).toBe(`${message} ${hint}`);
  expect(gaps).toEqual([{ code: "model_error", severity: "major", detail: answer }]);
  expect(confidence).toEqual({ level: "low", reason: answer });
  expect(of("answer-delta").map(({ text }) => text)).toEqual([answer]);
  expect(answer).not.toMatch(/\bAI_|Error\b|secret|undefined|\[object/);
  expect(message.match(/[.!?…](?:\s|$)/g)).toHaveLength(1);
  return answer;
}

const setting = (name: string, key: "apiKey" | "baseUrl"): string => {
  const provider = name.split(":")[0]!;
  const variable = provider.toUpperCase().replace("-", "_");
  return `(${variable}_${key === "apiKey" ? "API_KEY" : "BASE_URL"}, or models.${provider}.${key} in sluice.config.json)`;
};

describe.each(models)("a failure of %s is one sentence, one cause and one action", (name) => {
  test.each<[number, string, string]>([
    [401, "MODEL_ACCESS_DENIED", `${name} did not accept the API key (HTTP 401). Check the key ${setting(name, "apiKey")}.`],
    [
      403,
      "MODEL_ACCESS_DENIED",
      `${name} may not be used with this API key (HTTP 403). Choose another model, or allow this one in the account of the provider.`,
    ],
    [
      404,
      "MODEL_NOT_FOUND",
      `${name} does not exist at its provider (HTTP 404). Check the name of the model and the address ${setting(name, "baseUrl")}.`,
    ],
    [
      429,
      "MODEL_RATE_LIMITED",
      `${name} accepts no more requests for now (HTTP 429). Ask again in 1 s; if it repeats, check the quota of the account.`,
    ],
    [500, "MODEL_UNAVAILABLE", `${name} failed at its provider (HTTP 500). Ask again in a minute.`],
    [529, "MODEL_UNAVAILABLE", `${name} is overloaded (HTTP 529). Ask again in 1 s.`],
  ])("HTTP %d", { timeout: 60_000 }, async (code, error, answer) => {
    const turn = await ask(name, status(code));
    expect(expectOnce(turn, name)).toBe(answer);
    expect(turn.result.outcome.error!.code).toBe(error);
    expect(turn.requests).toBe(code < 429 ? 1 : 3); // no step after a planning call that would fail again
    expect(turn.of("plan")).toEqual([]);
  });

  test("a refused request keeps the provider's words, without its class names and keys", async () => {
    const turn = await ask(name, status(400, "AI_BadRequestError: tools are not supported"));
    expect(expectOnce(turn, name)).toBe(
      `${name} refused the request (HTTP 400): tools are not supported … Choose a model with tools and streaming, or ask a shorter question.`,
    );
  });

  test("a reply that is no JSON", async () => {
    const turn = await ask(
      name,
      (response) => void response.writeHead(200, { "content-type": "application/json" }).end("<html>Welcome</html>"),
    );
    expectOnce(turn, name);
    expect(["MODEL_REPLY_INVALID", "MODEL_REPLY_INCOMPLETE"]).toContain(turn.result.outcome.error!.code);
  });

  test("a stream that is cut", { timeout: 60_000 }, async () => {
    const turn = await ask(name, (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: x\n");
      setImmediate(() => response.destroy());
    });
    expectOnce(turn, name);
    expect(["MODEL_UNAVAILABLE", "MODEL_REPLY_INCOMPLETE"]).toContain(turn.result.outcome.error!.code);
  });

  test("no answer until the time of the turn is over", { timeout: 60_000 }, async () => {
    const turn = await ask(name, () => {}, { budgets: { wallMs: 1500 } });
    expect(expectOnce(turn, name)).toBe(
      `${name} did not answer within the time limit of the turn (1.5 s). Ask again, or raise budgets.wallMs in sluice.config.json for a slow model.`,
    );
  });
});

test("an address where nothing listens is named", { timeout: 60_000 }, async () => {
  const closed = await openLoopbackProviders("");
  await closed[Symbol.asyncDispose]();
  const environment = { OPENAI_COMPATIBLE_BASE_URL: closed.url };
  const model = await openModel("openai-compatible:m", { configuration: {}, environment });
  const turn = testTurn({ question: "Plot it.", model });
  const result = await runTurn(runtime, turn.request);
  expect(expectOnce({ ...turn, result }, "openai-compatible:m")).toBe(
    `openai-compatible:m cannot be reached at ${new URL(closed.url).host}: nothing listens there. Check that the server runs and that its address is right ${setting("openai-compatible:m", "baseUrl")}.`,
  );
});

test("the API lists a failed turn as failed, with its code and its model", { timeout: 60_000 }, async () => {
  await using provider = await openLoopbackProviders(status(401));
  const settings = { "openai-compatible": { baseUrl: provider.url, apiKey: KEY } };
  await using server = await openTestServer({ configuration: { model: "openai-compatible:m", models: settings } });
  const { body } = await server.call<TurnDocument>("POST", "/api/turns", { question: "How?", wait: true });
  expect([body.stopReason, body.result!.outcome.error!.code, body.result!.model]).toEqual([
    "model_error",
    "MODEL_ACCESS_DENIED",
    "openai-compatible:m",
  ]);
  const { turns } = (await server.call<{ turns: { stopReason: string }[] }>("GET", "/api/turns")).body;
  const { conversations } = (await server.call<ConversationList>("GET", "/api/conversations")).body;
  expect([turns, conversations].map(([one]) => one!.stopReason)).toEqual(["model_error", "model_error"]);
  expect(server.log.join("\n")).not.toContain(KEY);
});
