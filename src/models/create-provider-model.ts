import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { createGateway } from "ai";
import { UsageError } from "../errors/sluice-error.ts";
import type { ModelProviders, ProviderName } from "./model-settings.ts";

interface ProviderOptions {
  readonly providers: ModelProviders;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Creates a model of a provider's SDK. Always passes the URL and the key, so that the SDK does not read them from the process's environment. Default URLs
 * are those of the SDKs. Throws UsageError for a missing key or an invalid URL.
 */
export function createProviderModel({ provider, id }: { provider: ProviderName; id: string }, options: ProviderOptions): LanguageModelV4 {
  return createByProvider[provider](id, options);
}

const createByProvider: Readonly<Record<ProviderName, (id: string, options: ProviderOptions) => LanguageModelV4>> = {
  anthropic(id, { providers: { anthropic = {} }, environment }) {
    const apiKey = requireKey("anthropic", anthropic.apiKey ?? environment["ANTHROPIC_API_KEY"], "ANTHROPIC_API_KEY", id);
    const baseURL = checkUrl("anthropic", anthropic.baseUrl ?? environment["ANTHROPIC_BASE_URL"]) ?? "https://api.anthropic.com/v1";
    return createAnthropic({ apiKey, baseURL, headers: { ...anthropic.headers } }).languageModel(id);
  },
  openai(id, { providers: { openai = {} }, environment }) {
    const apiKey = requireKey("openai", openai.apiKey ?? environment["OPENAI_API_KEY"], "OPENAI_API_KEY", id);
    const baseURL = checkUrl("openai", openai.baseUrl ?? environment["OPENAI_BASE_URL"]) ?? "https://api.openai.com/v1";
    const { organization, project, api = "responses", headers } = openai;
    const provider = createOpenAI({ apiKey, baseURL, organization, project, headers: { ...headers } });
    return api === "chat" ? provider.chat(id) : provider.responses(id);
  },
  "openai-compatible"(id, { providers: { "openai-compatible": compatible = {} }, environment }) {
    const baseURL = checkUrl("openai-compatible", compatible.baseUrl ?? environment["OPENAI_COMPATIBLE_BASE_URL"]);
    if (baseURL === undefined) throw missingUrl(id);
    const apiKey = compatible.apiKey ?? environment["OPENAI_COMPATIBLE_API_KEY"];
    return createOpenAICompatible({
      name: "openai-compatible",
      baseURL,
      headers: { ...compatible.headers },
      includeUsage: true,
      supportsStructuredOutputs: compatible.structuredOutputs ?? false,
      ...(apiKey ? { apiKey } : {}),
    }).languageModel(id);
  },
  gateway(id, { providers: { gateway = {} }, environment }) {
    const key = gateway.apiKey ?? environment["AI_GATEWAY_API_KEY"] ?? environment["VERCEL_OIDC_TOKEN"];
    const apiKey = requireKey("gateway", key, "AI_GATEWAY_API_KEY", id);
    const baseURL = checkUrl("gateway", gateway.baseUrl);
    return createGateway({ apiKey, baseURL, headers: { ...gateway.headers } }).languageModel(id);
  },
};

const titles: Readonly<Record<ProviderName, string>> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  "openai-compatible": "the OpenAI-compatible server",
  gateway: "the AI Gateway",
};

function requireKey(provider: ProviderName, key: string | undefined, variable: string, id: string): string {
  if (key) return key;
  throw new UsageError({
    code: "MODEL_KEY_MISSING",
    message: `The model ${JSON.stringify(id)} needs an API key for ${titles[provider]}.`,
    hint: `Set the variable ${variable}, or models.${provider}.apiKey in sluice.config.json. \`--model demo\` works without a key.`,
    details: { provider, variable },
  });
}

function checkUrl(provider: ProviderName, text: string | undefined): string | undefined {
  if (!text) return undefined;
  const protocol = URL.parse(text)?.protocol;
  if (protocol === "http:" || protocol === "https:") return text;
  throw new UsageError({
    code: "MODEL_URL_INVALID",
    message: `The URL of ${titles[provider]} must begin with http:// or https://, not ${JSON.stringify(text)}.`,
    hint: `Correct models.${provider}.baseUrl in sluice.config.json, or its environment variable.`,
  });
}

function missingUrl(id: string): UsageError {
  return new UsageError({
    code: "MODEL_URL_MISSING",
    message: `The model ${JSON.stringify(id)} needs the URL of an OpenAI-compatible server.`,
    hint: "Set models.openai-compatible.baseUrl in sluice.config.json, or the variable OPENAI_COMPATIBLE_BASE_URL, for example http://127.0.0.1:11434/v1. `--model demo` works without one.",
  });
}
