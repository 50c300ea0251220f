import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelProviders } from "./contract.ts";

export interface OpenModelOptions {
  /** Of the configuration, what says how models are reached. */
  readonly configuration: { readonly models?: ModelProviders | undefined };
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where `script:FILE.json` is looked for; paths of a configuration are absolute already. */
  readonly workingDirectory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The model of a name. Nothing is sent anywhere. Throws UsageError with what to set. Null stands for no model configured. */
export async function openModel(name: string | null, options: OpenModelOptions): Promise<LanguageModelV4> {
  throw new Error(`not yet: ${name} ${options.workingDirectory}`);
}
