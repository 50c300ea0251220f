import path from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { UsageError } from "../errors/sluice-error.ts";
import { createProviderModel } from "./create-provider-model.ts";
import { createScriptedModel } from "./create-scripted-model.ts";
import demoScript from "./demo-script.json" with { type: "json" };
import { readModelScript } from "./model-script.ts";
import { parseModelName, type ModelProviders } from "./model-settings.ts";

export interface OpenModelOptions {
  /** Only the configuration key `models` is read. */
  readonly configuration: { readonly models?: ModelProviders | undefined };
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Base of relative `script:FILE.json` paths. Default: the process's working directory. A loaded configuration has absolute paths already. */
  readonly workingDirectory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Opens a model by name; null means that none is configured. Sends nothing. Throws UsageError with a hint on what to set. */
export async function openModel(name: string | null, options: OpenModelOptions): Promise<LanguageModelV4> {
  if (name === null) throw noModel();
  const parsed = parseModelName(name);
  switch (parsed.kind) {
    case "demo":
      return createScriptedModel(demoScript, { modelId: "demo" });
    case "script": {
      const file = path.resolve(options.workingDirectory ?? ".", parsed.file);
      return createScriptedModel(await readModelScript(file, options.signal), { modelId: name });
    }
    case "provider":
      return createProviderModel(parsed, { providers: options.configuration.models ?? {}, environment: options.environment });
  }
}

function noModel(): UsageError {
  return new UsageError({
    code: "MODEL_MISSING",
    message: "No model is configured.",
    hint: [
      'Set "model" in sluice.config.json, the variable SLUICE_MODEL, or --model: anthropic:MODEL (with ANTHROPIC_API_KEY), openai:MODEL (OPENAI_API_KEY),',
      "openai-compatible:MODEL (OPENAI_COMPATIBLE_BASE_URL), PROVIDER/MODEL of the AI Gateway (AI_GATEWAY_API_KEY). `--model demo` works without any of them.",
    ].join(" "),
  });
}
