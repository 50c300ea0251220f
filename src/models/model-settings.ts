import { z } from "zod";
import { httpUrl } from "../protocol/setting.ts";

const provider = z.strictObject({
  baseUrl: httpUrl.optional(),
  apiKey: z.string().min(1).optional(),
  /** They go with every request. */
  headers: z.record(z.string().min(1).max(200), z.string()).optional(),
});

const openai = provider.extend({
  organization: z.string().optional(),
  project: z.string().optional(),
  /** `responses` unless told; `chat` for proxies that know chat completions only. */
  api: z.enum(["responses", "chat"]).optional(),
});

const compatible = provider.extend({
  /** Whether the server takes a JSON schema for its answer. False unless told: then the model is asked for JSON, and the answer is checked. */
  structuredOutputs: z.boolean().optional(),
});

/** How each provider of models is reached: `models` in the configuration. Everything in it is optional; keys come from the usual variables otherwise. */
export const modelProvidersSchema = z.strictObject({
  anthropic: provider.optional().describe("`baseUrl`, `apiKey`, `headers`, see [models.md](models.md)"),
  openai: openai.optional().describe("the same, and `organization`, `project`, `api`"),
  "openai-compatible": compatible
    .optional()
    .describe("any server that speaks the chat completions of OpenAI: the same, and `structuredOutputs`"),
  gateway: provider.optional().describe("`baseUrl`, `apiKey`, `headers`"),
});

export type ModelProvider = z.infer<typeof provider>;
export type OpenaiProvider = z.infer<typeof openai>;
export type CompatibleProvider = z.infer<typeof compatible>;
export type ModelProviders = z.infer<typeof modelProvidersSchema>;

const scriptStep = z
  .strictObject({
    toolCalls: z
      .array(z.strictObject({ tool: z.string().min(1), input: z.record(z.string(), z.unknown()) }).readonly())
      .min(1)
      .readonly()
      .optional(),
    text: z.string().optional(),
    /** What the step is said to have cost; nothing unless given. */
    usage: z.strictObject({ inputTokens: z.int().min(0), outputTokens: z.int().min(0) }).optional(),
  })
  .readonly()
  .refine(({ toolCalls, text }) => toolCalls !== undefined || text !== undefined, "needs toolCalls or text");

export const modelScriptSchema = z.strictObject({
  plan: z.record(z.string(), z.unknown()).optional(),
  steps: z.array(scriptStep).min(1).readonly(),
  synthesis: z.string().optional(),
});

/**
 * What a scripted model says, in order; a `script:FILE.json`. The planning call takes `plan` (`{}` without one), each step takes the next of `steps` (the
 * last one again when they have run out), synthesis takes `synthesis`, or else the text of the last step.
 */
export type ModelScript = Readonly<z.infer<typeof modelScriptSchema>>;
export type ScriptStep = z.infer<typeof scriptStep>;

/** What a call is for: the turn says it in `providerOptions.sluice.phase` (with `step`, counted from 0), and real providers leave it alone. */
export type ModelPhase = "plan" | "step" | "synthesis";
