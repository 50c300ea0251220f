/** How each provider of models is reached: `models` in the configuration. Everything in it is optional; keys come from the usual variables otherwise. */
export interface ModelProviders {
  readonly anthropic?: ModelProvider | undefined;
  readonly openai?: OpenaiProvider | undefined;
  /** Any server that speaks the chat completions of OpenAI: a local one too. */
  readonly "openai-compatible"?: CompatibleProvider | undefined;
  readonly gateway?: ModelProvider | undefined;
}

export interface ModelProvider {
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** They go with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface OpenaiProvider extends ModelProvider {
  readonly organization?: string | undefined;
  readonly project?: string | undefined;
  /** `responses` unless told; `chat` for proxies that know chat completions only. */
  readonly api?: "responses" | "chat" | undefined;
}

export interface CompatibleProvider extends ModelProvider {
  /** Whether the server takes a JSON schema for its answer. False unless told: then the model is asked for JSON, and the answer is checked. */
  readonly structuredOutputs?: boolean | undefined;
}

/**
 * What a scripted model says, in order; a `script:FILE.json`. The planning call takes `plan`, each step takes the next of `steps` (the last one again when they
 * have run out), synthesis takes `synthesis`, or else the text of the last step.
 */
export interface ModelScript {
  /** The object that the planning call answers with. Without it the call is answered with `{}`. */
  readonly plan?: Readonly<Record<string, unknown>> | undefined;
  readonly steps: readonly ScriptStep[];
  readonly synthesis?: string | undefined;
}

export type ScriptStep =
  | { readonly toolCalls: readonly ScriptToolCall[]; readonly text?: string | undefined; readonly usage?: ScriptUsage | undefined }
  | { readonly text: string; readonly usage?: ScriptUsage | undefined };

/** What the step is said to have cost; nothing unless told. */
export interface ScriptUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ScriptToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What a call is for: the turn says it in `providerOptions.sluice.phase` (with `step`, counted from 0), and real providers leave it alone. */
export type ModelPhase = "plan" | "step" | "synthesis";
