import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelScript } from "./contract.ts";

/** A language model that says what its script says. */
export function createScriptedModel(script: ModelScript): LanguageModelV4 {
  throw new Error(`not yet: ${script.steps.length}`);
}
