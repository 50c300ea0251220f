import { nearestName } from "../errors/nearest-name.ts";
import { UsageError } from "../errors/sluice-error.ts";

const providerNames = ["anthropic", "openai", "openai-compatible", "gateway"] as const;
export type ProviderName = (typeof providerNames)[number];

export type ModelName =
  | { readonly kind: "provider"; readonly provider: ProviderName; readonly id: string }
  | { readonly kind: "script"; readonly file: string }
  | { readonly kind: "demo" };

/** `anthropic:ID`, `openai:ID`, `openai-compatible:ID`, `gateway:ID` or plain `provider/model`, `script:FILE.json`, `demo`. */
export function parseModelName(name: string): ModelName {
  if (name === "demo") return { kind: "demo" };
  const found = /^([^:/]*):(.*)$/s.exec(name);
  if (found === null) {
    if (/^[^/\s]+\/\S+$/.test(name)) return { kind: "provider", provider: "gateway", id: name };
    throw wrong(`The model ${JSON.stringify(name)} has no provider.`);
  }
  const [, prefix = "", rest = ""] = found;
  if (rest.trim() === "") throw wrong(`The model ${JSON.stringify(name)} has nothing after the colon.`);
  if (prefix === "script") return { kind: "script", file: rest };
  const provider = providerNames.find((one) => one === prefix);
  if (provider !== undefined) return { kind: "provider", provider, id: rest };
  const near = nearestName(prefix, [...providerNames, "script"]);
  throw wrong(`There is no provider ${JSON.stringify(prefix)} of models.${near === null ? "" : ` Did you mean ${near}:${rest}?`}`);
}

function wrong(message: string): UsageError {
  return new UsageError({
    code: "MODEL_NAME_INVALID",
    message,
    hint: "A model is anthropic:MODEL, openai:MODEL, openai-compatible:MODEL, gateway:PROVIDER/MODEL, PROVIDER/MODEL (AI Gateway), script:FILE.json or demo.",
  });
}
