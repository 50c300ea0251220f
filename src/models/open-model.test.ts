import { createServer } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { generateText } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UsageError } from "../errors/sluice-error.ts";
import { howToConnect } from "../protocol/connect-model.ts";
import { openModel } from "./open-model.ts";

const bare = { configuration: {}, environment: {} };

async function errorOf(opening: Promise<unknown>): Promise<{ code: string; message: string; hint: string | undefined }> {
  const error = await opening.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof UsageError)) throw new Error(`expected a UsageError, got ${String(error)}`);
  return { code: error.code, message: error.message, hint: error.hint };
}

describe("openModel", () => {
  it("opens every provider without sending anything", async () => {
    const environment = { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "o", AI_GATEWAY_API_KEY: "g" };
    const configuration = { models: { "openai-compatible": { baseUrl: "http://127.0.0.1:9/v1" } } };
    const open = async (name: string) => {
      const { provider, modelId, specificationVersion } = await openModel(name, { configuration, environment });
      return [provider, modelId, specificationVersion];
    };
    expect(await open("anthropic:claude-x")).toEqual(["anthropic.messages", "claude-x", "v4"]);
    expect(await open("openai:gpt-x")).toEqual(["openai.responses", "gpt-x", "v4"]);
    expect(await open("openai-compatible:meta/llama3:8b")).toEqual(["openai-compatible.chat", "meta/llama3:8b", "v4"]);
    expect(await open("gateway:anthropic/claude-x")).toEqual(["gateway", "anthropic/claude-x", "v4"]);
    expect(await open("anthropic/claude-x")).toEqual(["gateway", "anthropic/claude-x", "v4"]);
    expect(await open("meta/llama:free")).toEqual(["gateway", "meta/llama:free", "v4"]);
    expect(await open("demo")).toEqual(["sluice.demo", "demo", "v4"]);
  });

  it("uses the chat completions API of OpenAI when the configuration sets it", async () => {
    const configuration = { models: { openai: { apiKey: "o", api: "chat" as const } } };
    expect((await openModel("openai:gpt-x", { configuration, environment: {} })).provider).toBe("openai.chat");
  });

  it("says what to set when no model is configured", async () => {
    expect(await errorOf(openModel(null, bare))).toEqual({
      code: "MODEL_MISSING",
      message: "No model is connected.",
      hint: howToConnect,
    });
  });

  it.each([
    ["anthropic:m", "anthropic", "ANTHROPIC_API_KEY", "Anthropic"],
    ["openai:m", "openai", "OPENAI_API_KEY", "OpenAI"],
    ["gateway:m", "gateway", "AI_GATEWAY_API_KEY", "the AI Gateway"],
  ])("names the missing variable of %s", async (name, provider, variable, title) => {
    expect(await errorOf(openModel(name, bare))).toEqual({
      code: "MODEL_KEY_MISSING",
      message: `The model "m" needs an API key for ${title}.`,
      hint: `Set the variable ${variable}, or models.${provider}.apiKey in sluice.config.json.`,
    });
  });

  it("needs a valid URL for an OpenAI-compatible server", async () => {
    expect(await errorOf(openModel("openai-compatible:m", bare))).toMatchObject({
      code: "MODEL_URL_MISSING",
      message: 'The model "m" needs the URL of an OpenAI-compatible server.',
    });
    const configuration = { models: { "openai-compatible": { baseUrl: "localhost:11434" } } };
    expect(await errorOf(openModel("openai-compatible:m", { configuration, environment: {} }))).toMatchObject({
      code: "MODEL_URL_INVALID",
      message: 'The URL of the OpenAI-compatible server must begin with http:// or https://, not "localhost:11434".',
    });
  });

  it.each([
    ["antropic:m", 'Unknown model provider "antropic". Did you mean anthropic:m?'],
    ["nobody:m", 'Unknown model provider "nobody".'],
    ["gpt-x", 'The model "gpt-x" has no provider.'],
    ["openai:", 'The model "openai:" has nothing after the colon.'],
    ["", 'The model "" has no provider.'],
  ])("refuses the name %j", async (name, message) => {
    expect(await errorOf(openModel(name, bare))).toMatchObject({ code: "MODEL_NAME_INVALID", message });
  });
});

describe("an OpenAI-compatible server", () => {
  it("receives its own key and headers, and nothing from the process's environment", async () => {
    const requests: { url: string | undefined; authorization: string | undefined; extra: unknown }[] = [];
    const server = createServer((request, response) => {
      requests.push({ url: request.url, authorization: request.headers.authorization, extra: request.headers["x-extra"] });
      request.resume().on("end", () => {
        const choices = [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }];
        response.setHeader("content-type", "application/json").end(JSON.stringify({ id: "1", created: 1, model: "m", choices }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const configuration = { models: { "openai-compatible": { baseUrl, headers: { "X-Extra": "yes" } } } };
    const model = await openModel("openai-compatible:m", { configuration, environment: { OPENAI_COMPATIBLE_API_KEY: "secret" } });
    const providerOptions = { sluice: { phase: "step", step: 0 } };
    expect((await generateText({ model, prompt: "hi", providerOptions })).text).toBe("hello");
    expect(requests).toEqual([{ url: "/v1/chat/completions", authorization: "Bearer secret", extra: "yes" }]);
    server.close();
  });
});

describe("a provider with a custom base URL", () => {
  const keys = { ANTHROPIC_API_KEY: "a-key", OPENAI_API_KEY: "o-key", AI_GATEWAY_API_KEY: "g-key" };

  it.each([
    ["anthropic:m", "anthropic", "/base/messages", "x-api-key", "a-key"],
    ["openai:m", "openai", "/base/responses", "authorization", "Bearer o-key"],
    ["p/m", "gateway", "/base/language-model", "authorization", "Bearer g-key"],
  ])("receives the requests there: %s", async (name, provider, url, header, value) => {
    const requests: unknown[] = [];
    const server = createServer((request, response) => {
      requests.push([request.url, request.headers[header], request.headers["x-extra"]]);
      request.resume().on("end", () => response.writeHead(400, { "content-type": "application/json" }).end('{"error":{"message":"no"}}'));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`;
    const configuration = { models: { [provider]: { baseUrl, headers: { "X-Extra": "yes" } } } };
    const model = await openModel(name, { configuration, environment: keys });
    expect(await generateText({ model, prompt: "hi", maxRetries: 0 }).catch(() => "refused")).toBe("refused");
    expect(requests).toEqual([[url, value, "yes"]]);
    server.close();
  });
});

describe("a script from a file", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "sluice-models-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const open = async (content: unknown) => {
    await writeFile(path.join(directory, "script.json"), typeof content === "string" ? content : JSON.stringify(content));
    return await openModel("script:script.json", { ...bare, workingDirectory: directory });
  };

  it("is resolved against the working directory", async () => {
    const model = await open({ steps: [{ text: "from the file" }] });
    expect((await generateText({ model, prompt: "hi" })).text).toBe("from the file");
  });

  it("reports every problem with its path", async () => {
    const file = path.join(directory, "script.json");
    const wrong = {
      plann: {},
      steps: [{ toolCall: [] }, { toolCalls: [{ tool: 5, inputs: {} }] }, { text: "x", usage: { inputTokens: -1, outputTokens: 1.5 } }],
      synthesis: null,
    };
    expect((await errorOf(open(wrong))).message.split("\n")).toEqual([
      `The model script is invalid (${file}):`,
      '  steps[0].toolCall: is not a known field. Did you mean "toolCalls"?',
      "  steps[0]: needs toolCalls or text.",
      "  steps[1].toolCalls[0].tool: must be a string, not 5.",
      "  steps[1].toolCalls[0].input: is missing.",
      '  steps[1].toolCalls[0].inputs: is not a known field. Did you mean "input"?',
      "  steps[2].usage.inputTokens: must be at least 0, not -1.",
      "  steps[2].usage.outputTokens: must be an integer, not 1.5.",
      "  synthesis: must be a string, not null.",
      '  plann: is not a known field. Did you mean "plan"?',
    ]);
    expect((await errorOf(open({ steps: [] }))).message).toContain("  steps: must not be empty.");
    expect((await errorOf(open({ steps: [{}] }))).message).toContain("  steps[0]: needs toolCalls or text.");
    expect((await errorOf(open("[1"))).message).toContain("is not valid JSON");
  });

  it("reports a missing file", async () => {
    const missing = path.join(directory, "none.json");
    expect(await errorOf(openModel(`script:${missing}`, bare))).toMatchObject({
      code: "MODEL_SCRIPT_NOT_READ",
      message: `The model script cannot be read from ${missing}: no such file.`,
    });
  });
});
