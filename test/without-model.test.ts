import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundledSample } from "../src/config/open-configured.ts";
import { openModel } from "../src/models/open-model.ts";
import { demoQuestion, howToConnect, waysToConnect } from "../src/protocol/connect-model.ts";
import type { ConversationList } from "../src/protocol/http-conversations.ts";
import type { ServerInfo } from "../src/protocol/http-operations.ts";
import { createConversation } from "../src/turn/create-conversation.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { openLoopbackProviders } from "./fixtures/loopback-providers.ts";
import { openTestServer, type TestServer } from "./fixtures/open-test-server.ts";
import { openTestRuntime } from "./test-runtime.ts";
import { testTurn } from "./turn-fixtures.ts";

const root = path.join(import.meta.dirname, "..");
const otherQuestions = [
  "Which region has the highest revenue?",
  "How did total reserves change?",
  demoQuestion.toLowerCase(),
  `${demoQuestion} And why?`,
];

describe("the server, when only the demo can answer", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer({ configuration: { mcpServers: bundledSample(), model: "demo" } });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const recorded = async (): Promise<number[]> => {
    const { turns } = (await server.call<{ turns: unknown[] }>("GET", "/api/turns")).body;
    return [turns.length, (await server.call<ConversationList>("GET", "/api/conversations")).body.conversations.length];
  };
  const chat = (question: string): object => ({ id: "c1", messages: [{ role: "user", parts: [{ type: "text", text: question }] }] });
  const refused = {
    status: 409,
    body: { error: { code: "MODEL_MISSING", message: expect.stringMatching(/^No model is connected\. /), hint: howToConnect } },
  };

  test.each(otherQuestions)("refuses with 409 and records nothing: %s", async (question) => {
    const before = await recorded();
    expect(await server.call("POST", "/api/turns", { question, wait: true })).toMatchObject(refused);
    expect(await server.call("POST", "/api/chat", chat(question))).toMatchObject(refused);
    expect(await recorded()).toEqual(before);
  });

  test("refuses its own question, too, in a conversation with a file", async () => {
    const upload = await server.request("/api/conversations/c2/files?name=sales.csv", {
      method: "POST",
      body: "region,revenue\nNorth,10\n",
    });
    expect(upload.status).toBe(201);
    const answer = await server.call<{ error: { message: string } }>("POST", "/api/turns", {
      question: demoQuestion,
      conversationId: "c2",
    });
    expect(answer).toMatchObject(refused);
    expect(answer.body.error.message).toContain("this conversation has data of your own");
  });

  test("answers its question, however it is spaced, and says that it is the demo", { timeout: 180_000 }, async () => {
    const { model } = (await server.call<ServerInfo>("GET", "/api/info")).body;
    expect(model).toBe("demo");
    const question = `  ${demoQuestion.replaceAll(" ", "\n ")} `;
    const { status, body } = await server.call<{ result: { answer: string } }>("POST", "/api/turns", { question, wait: true });
    expect(status).toBe(200);
    expect(body.result.answer).toContain("Total reserves of the venues fell by 106,201 BTC");
    expect(body.result.answer).toContain("No model wrote this text");
  });
});

test("the demo states its answer only over the results of its own sample", { timeout: 180_000 }, async () => {
  const runtime = openTestRuntime("gvisor");
  const model = await openModel("demo", { configuration: {}, environment: {} });
  const { request } = testTurn({ model, question: demoQuestion });
  const { answer } = await runTurn(runtime, request);
  await runtime.close();
  expect(answer).toContain("The demo has no answer");
  expect(answer).not.toContain("106,201");
});

test("the library refuses like the server, before any event", async () => {
  const runtime = openTestRuntime("gvisor");
  const model = await openModel("demo", { configuration: {}, environment: {} });
  const { request, events } = testTurn({ model, question: otherQuestions[0]! });
  await expect(runTurn(runtime, request)).rejects.toMatchObject({ code: "MODEL_MISSING", hint: howToConnect });
  const conversation = createConversation();
  conversation.evidence.addData({ name: "sales", bytes: Buffer.from("[]"), format: "json" });
  await expect(runTurn(runtime, { ...request, question: demoQuestion, conversation })).rejects.toMatchObject({ code: "MODEL_MISSING" });
  expect(events).toEqual([]);
  await runtime.close();
});

describe("sluice ask", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-without-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:OPENAI|ANTHROPIC|AI_GATEWAY|SLUICE_MODEL)/.test(name)),
  );

  /** Types the lines in a shell, then asks. */
  async function type(lines: readonly string[], question: string): Promise<{ status: number | null; stdout: string; stderr: string }> {
    const script = [...lines, 'exec "$SLUICE" ask "$QUESTION"'].join("\n");
    const env = { ...environment, SLUICE: path.join(root, "bin/sluice"), QUESTION: question, SLUICE_DATA: path.join(directory, "data") };
    const child = spawn("sh", ["-ec", script], { cwd: directory, env });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (text: Buffer) => (output.stdout += text.toString()));
    child.stderr.on("data", (text: Buffer) => (output.stderr += text.toString()));
    const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { status, ...output };
  }

  test.each([[], ["export SLUICE_MODEL=demo"]])("exits with 2 and says how to connect a model, after %j", async (...lines) => {
    const { status, stdout, stderr } = await type(lines, otherQuestions[0]!);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(`sluice: No model is connected. The demo answers its sample question only.\n  ${howToConnect}\n`);
  });

  test.each(waysToConnect)("answers when the lines for $title are typed as given", { timeout: 120_000 }, async ({ lines }) => {
    await using provider = await openLoopbackProviders("It is forty-two.");
    // Only the address is that of the loopback.
    const typed = lines.map((line) => line.replace("http://127.0.0.1:11434/v1", provider.url));
    const addresses = [`export OPENAI_BASE_URL=${provider.url}`, `export ANTHROPIC_BASE_URL=${provider.url}`];
    const { status, stdout } = await type([...addresses, ...typed], "What is six times seven?");
    expect(stdout).toMatch(/^It is forty-two\.\n/);
    expect(status).toBe(0);
    const name = /SLUICE_MODEL=[^:]+:(.+)/.exec(lines.join("\n"))![1];
    expect(new Set(provider.requests.map(({ body }) => body["model"]))).toEqual(new Set([name]));
  });
});

test.each(["README.md", "docs/models.md", "docs/run.md", "docs/server.md"])("%s asks the demo the question that it answers", (file) => {
  expect(readFileSync(path.join(root, file), "utf8")).toContain(demoQuestion);
});
