import type { LanguageModel } from "ai";

/** The name of a model as it is configured, where possible: `openai:gpt-x`, `demo`, `script:FILE.json`. */
export function nameModel(model: LanguageModel): string {
  if (typeof model === "string") return model;
  const [provider] = model.provider.split(".", 1);
  return provider === "sluice" ? model.modelId : `${provider}:${model.modelId}`;
}
