import path from "node:path";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { createGateway } from "ai";
import { UsageError } from "../errors/sluice-error.ts";
import { createScriptedModel } from "./create-scripted-model.ts";
import { createDemoModel, noModel } from "./demo.ts";
import { readModelScript } from "./model-script.ts";
import { parseModelName, type ModelProviders, type ProviderName } from "./model-settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface OpenModelOptions {
  /** Only the configuration key `models` is read. */
  readonly configuration: { readonly models?: ModelProviders | undefined };
  readonly environment: Environment;
  /** Base of relative `script:FILE.json` paths. Default: the process's working directory. A loaded configuration has absolute paths already. */
  readonly workingDirectory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Opens a model by name; null means that none is configured. Sends nothing. Throws a UsageError that says what to set. */
export async function openModel(name: string | null, options: OpenModelOptions): Promise<LanguageModelV4> {
  if (name === null) throw noModel();
  const parsed = parseModelName(name);
  switch (parsed.kind) {
    case "demo":
      return createDemoModel();
    case "script": {
      const file = path.resolve(options.workingDirectory ?? ".", parsed.file);
      return createScriptedModel(await readModelScript(file, options.signal), { modelId: name });
    }
    case "provider":
      return createByProvider[parsed.provider](parsed.id, options.configuration.models ?? {}, options.environment);
  }
}

/**
 * Creates a model with a provider's SDK. Always passes the URL and the key, so that the SDK does not read them from the process's environment. The default
 * URLs are those of the SDKs.
 */
const createByProvider: Readonly<
  Record<ProviderName, (id: string, providers: ModelProviders, environment: Environment) => LanguageModelV4>
> = {
  anthropic(id, { anthropic = {} }, environment) {
    const apiKey = requireKey("anthropic", anthropic.apiKey ?? environment["ANTHROPIC_API_KEY"], "ANTHROPIC_API_KEY", id);
    const baseURL = checkUrl("anthropic", anthropic.baseUrl ?? environment["ANTHROPIC_BASE_URL"]) ?? "https://api.anthropic.com/v1";
    return createAnthropic({ apiKey, baseURL, headers: { ...anthropic.headers } }).languageModel(id);
  },
  openai(id, { openai = {} }, environment) {
    const apiKey = requireKey("openai", openai.apiKey ?? environment["OPENAI_API_KEY"], "OPENAI_API_KEY", id);
    const baseURL = checkUrl("openai", openai.baseUrl ?? environment["OPENAI_BASE_URL"]) ?? "https://api.openai.com/v1";
    const { organization, project, api = "responses", headers } = openai;
    const provider = createOpenAI({ apiKey, baseURL, organization, project, headers: { ...headers } });
    return api === "chat" ? provider.chat(id) : provider.responses(id);
  },
  "openai-compatible"(id, { "openai-compatible": compatible = {} }, environment) {
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
  gateway(id, { gateway = {} }, environment) {
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
    hint: `Set the variable ${variable}, or models.${provider}.apiKey in sluice.config.json.`,
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
    hint: "Set models.openai-compatible.baseUrl in sluice.config.json, or the variable OPENAI_COMPATIBLE_BASE_URL, for example http://127.0.0.1:11434/v1.",
  });
}
