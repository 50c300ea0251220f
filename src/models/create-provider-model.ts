import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { createGateway } from "ai";
import { UsageError } from "../errors/sluice-error.ts";
import type { ModelProviders } from "./model-settings.ts";
import type { ProviderName } from "./parse-model-name.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Reach {
  readonly providers: ModelProviders;
  readonly environment: Environment;
}

/**
 * Every address and key is handed over, so that what the SDKs would read from the process's own environment does not count. The addresses without one
 * are those the SDKs have.
 */
export function createProviderModel({ provider, id }: { provider: ProviderName; id: string }, reach: Reach): LanguageModelV4 {
  return makers[provider](id, reach);
}

const makers: Readonly<Record<ProviderName, (id: string, reach: Reach) => LanguageModelV4>> = {
  anthropic(id, { providers: { anthropic = {} }, environment }) {
    const apiKey = keyOf("anthropic", anthropic.apiKey ?? environment["ANTHROPIC_API_KEY"], "ANTHROPIC_API_KEY", id);
    const baseURL = urlOf("anthropic", anthropic.baseUrl ?? environment["ANTHROPIC_BASE_URL"]) ?? "https://api.anthropic.com/v1";
    return createAnthropic({ apiKey, baseURL, headers: { ...anthropic.headers } }).languageModel(id);
  },
  openai(id, { providers: { openai = {} }, environment }) {
    const apiKey = keyOf("openai", openai.apiKey ?? environment["OPENAI_API_KEY"], "OPENAI_API_KEY", id);
    const baseURL = urlOf("openai", openai.baseUrl ?? environment["OPENAI_BASE_URL"]) ?? "https://api.openai.com/v1";
    const { organization, project, api = "responses", headers } = openai;
    const provider = createOpenAI({
      apiKey,
      baseURL,
      headers: { ...headers },
      ...(organization === undefined ? {} : { organization }),
      ...(project === undefined ? {} : { project }),
    });
    return api === "chat" ? provider.chat(id) : provider.responses(id);
  },
  "openai-compatible"(id, { providers: { "openai-compatible": compatible = {} }, environment }) {
    const baseURL = urlOf("openai-compatible", compatible.baseUrl ?? environment["OPENAI_COMPATIBLE_BASE_URL"]);
    if (baseURL === undefined) throw noAddress(id);
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
    const given = gateway.apiKey ?? environment["AI_GATEWAY_API_KEY"] ?? environment["VERCEL_OIDC_TOKEN"];
    const apiKey = keyOf("gateway", given, "AI_GATEWAY_API_KEY", id);
    const baseURL = urlOf("gateway", gateway.baseUrl);
    return createGateway({ apiKey, headers: { ...gateway.headers }, ...(baseURL === undefined ? {} : { baseURL }) }).languageModel(id);
  },
};

const titles: Readonly<Record<ProviderName, string>> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  "openai-compatible": "the OpenAI-compatible server",
  gateway: "the AI Gateway",
};

function keyOf(provider: ProviderName, key: string | undefined, variable: string, id: string): string {
  if (key) return key;
  throw new UsageError({
    code: "MODEL_KEY_MISSING",
    message: `The model ${JSON.stringify(id)} needs a key of ${titles[provider]}, and there is none.`,
    hint: `Set the variable ${variable}, or models.${provider}.apiKey in sluice.config.json. \`--model demo\` works without a key.`,
    details: { provider, variable },
  });
}

function urlOf(provider: ProviderName, text: string | undefined): string | undefined {
  if (!text) return undefined;
  const protocol = URL.parse(text)?.protocol;
  if (protocol === "http:" || protocol === "https:") return text;
  throw new UsageError({
    code: "MODEL_URL_INVALID",
    message: `The address of ${titles[provider]} is no http or https URL: ${JSON.stringify(text)}`,
    hint: `Put it right in models.${provider}.baseUrl of sluice.config.json, or in the variable for it.`,
  });
}

function noAddress(id: string): UsageError {
  return new UsageError({
    code: "MODEL_URL_MISSING",
    message: `The model ${JSON.stringify(id)} is on an OpenAI-compatible server, and there is no address for one.`,
    hint: "Set models.openai-compatible.baseUrl in sluice.config.json, or the variable OPENAI_COMPATIBLE_BASE_URL, like http://127.0.0.1:11434/v1. `--model demo` works without.",
  });
}
