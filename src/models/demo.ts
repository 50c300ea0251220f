import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { LanguageModel } from "ai";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { demoOnlyMessage, demoQuestion, howToConnect, noModelMessage } from "../protocol/connect-model.ts";
import { createScriptedModel } from "./create-scripted-model.ts";
import script from "./demo-script.json" with { type: "json" };
import type { ModelScript } from "./model-script.ts";

const demoScript: ModelScript = script;

/** The provider of the demo model, by which a turn recognizes it. */
const DEMO_PROVIDER = "sluice.demo";

/** The total of the last day, as the demo's cell returns it. The written answer is true only over the data that gives this number. */
const SAMPLE_RESULT = "1785306.";

const noAnswer = "The demo has no answer, because its tools and its cell did not return the results of its sample data.";
const withoutAnswer: ModelScript = { ...demoScript, steps: [...demoScript.steps.slice(0, -1), { text: noAnswer }], synthesis: noAnswer };

/** Creates a model that replies from a script, and gives the script's answer only when the results that it states are in the prompt. */
export function createDemoModel(): LanguageModelV4 {
  const model = createScriptedModel(({ prompt }) => (JSON.stringify(prompt).includes(SAMPLE_RESULT) ? demoScript : withoutAnswer), {
    modelId: "demo",
  });
  return { ...model, provider: DEMO_PROVIDER };
}

export function noModel(message: string = noModelMessage): UsageError {
  return new UsageError({ code: "MODEL_MISSING", message, hint: howToConnect });
}

interface DemoCheck {
  readonly model: LanguageModel;
  readonly question: string;
  /** Of the conversation. */
  readonly evidence: EvidenceStore;
}

/**
 * Throws MODEL_MISSING when the demo is asked anything but its sample question about its sample data: its answer is written in advance, so that it would
 * be wrong. White space does not count. Other models may be asked anything.
 */
export function refuseWhatDemoCannotAnswer({ model, question, evidence }: DemoCheck): void {
  if (typeof model === "string" || model.provider !== DEMO_PROVIDER) return;
  if (question.trim().replaceAll(/\s+/g, " ") !== demoQuestion) throw noModel(demoOnlyMessage);
  const hasOwnData = evidence.aliases().some((alias) => evidence.get(alias)?.source === "data");
  if (hasOwnData)
    throw noModel(`${noModelMessage} The demo answers about its sample data only, and this conversation has data of your own.`);
}
