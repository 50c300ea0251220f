import { z } from "zod";
import { nearestName } from "../errors/nearest-name.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { httpUrl } from "../protocol/setting.ts";

const provider = z.strictObject({
  baseUrl: httpUrl.optional(),
  apiKey: z.string().min(1).optional(),
  /** Sent with every request. */
  headers: z.record(z.string().min(1).max(200), z.string()).optional(),
});

const openai = provider.extend({
  organization: z.string().optional(),
  project: z.string().optional(),
  /** Default: `responses`. Use `chat` for proxies that only support chat completions. */
  api: z.enum(["responses", "chat"]).optional(),
});

const compatible = provider.extend({
  /** Whether the server accepts a JSON schema for its answer. Default: false; the model is asked for JSON, and Sluice validates it. */
  structuredOutputs: z.boolean().optional(),
});

/** The configuration key `models`: how to reach each provider. All fields are optional; keys default to the usual environment variables. */
export const modelProvidersSchema = z.strictObject({
  anthropic: provider.optional().describe("`baseUrl`, `apiKey`, `headers`, see [models.md](models.md)"),
  openai: openai.optional().describe("like `anthropic`, plus `organization`, `project` and `api`"),
  "openai-compatible": compatible
    .optional()
    .describe("any server with an OpenAI-compatible chat completions API: like `anthropic`, plus `structuredOutputs`"),
  gateway: provider.optional().describe("`baseUrl`, `apiKey`, `headers`"),
});

export type ModelProviders = z.infer<typeof modelProvidersSchema>;

const providerNames = ["anthropic", "openai", "openai-compatible", "gateway"] as const;
export type ProviderName = (typeof providerNames)[number];

export type ModelName =
  | { readonly kind: "provider"; readonly provider: ProviderName; readonly id: string }
  | { readonly kind: "script"; readonly file: string }
  | { readonly kind: "demo" };

/**
 * Parses `anthropic:ID`, `openai:ID`, `openai-compatible:ID`, `gateway:ID`, plain `provider/model` (gateway), `script:FILE.json` or `demo`.
 * Throws UsageError for anything else.
 */
export function parseModelName(name: string): ModelName {
  if (name === "demo") return { kind: "demo" };
  const match = /^([^:/]*):(.*)$/s.exec(name);
  if (match === null) {
    if (/^[^/\s]+\/\S+$/.test(name)) return { kind: "provider", provider: "gateway", id: name };
    throw invalidName(`The model ${JSON.stringify(name)} has no provider.`);
  }
  const [, prefix = "", rest = ""] = match;
  if (rest.trim() === "") throw invalidName(`The model ${JSON.stringify(name)} has nothing after the colon.`);
  if (prefix === "script") return { kind: "script", file: rest };
  const provider = providerNames.find((known) => known === prefix);
  if (provider !== undefined) return { kind: "provider", provider, id: rest };
  const nearest = nearestName(prefix, [...providerNames, "script"]);
  throw invalidName(`Unknown model provider ${JSON.stringify(prefix)}.${nearest === null ? "" : ` Did you mean ${nearest}:${rest}?`}`);
}

function invalidName(message: string): UsageError {
  return new UsageError({
    code: "MODEL_NAME_INVALID",
    message,
    hint: "A model is anthropic:MODEL, openai:MODEL, openai-compatible:MODEL, gateway:PROVIDER/MODEL, PROVIDER/MODEL (AI Gateway), script:FILE.json or demo.",
  });
}
