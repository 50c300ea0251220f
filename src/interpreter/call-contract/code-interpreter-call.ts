import { z } from "zod";
import { interpreterParameters } from "../../prompts/interpreter-tools.ts";

export const contractOperations = [
  "derive_metric",
  "aggregate",
  "align",
  "transform",
  "statistics",
  "model_fit",
  "chart",
  "other",
] as const;
export type ContractOperation = (typeof contractOperations)[number];

export const artifactKinds = ["image", "chart"] as const;
export type ArtifactKind = (typeof artifactKinds)[number];

/** Bounds the work of checking a call; the sandbox has limits of its own. */
export const callLimits = { aliases: 256, reasonCharacters: 2_000 } as const;

const descriptions = interpreterParameters.code_interpreter;

/** What a call declares. The declaration is checked before the code runs and again afterwards. */
export const postProcessingContractSchema = z
  .strictObject({
    operation: z.enum(contractOperations).describe(descriptions.operation),
    reason: z.string().trim().min(1).max(callLimits.reasonCharacters).describe(descriptions.reason),
    inputAliases: z.array(z.string()).max(callLimits.aliases).describe(descriptions.inputAliases),
    expectedArtifacts: z.array(z.enum(artifactKinds)).max(callLimits.aliases).describe(descriptions.expectedArtifacts),
  })
  .describe(descriptions.postProcessingContract);

/** The published schema of the tool. `validateCodeInterpreterContract` checks what a schema cannot express: known aliases, names, Python syntax. */
export const codeInterpreterCallSchema = z.strictObject({
  code: z.string().describe(descriptions.code),
  inputs: z.record(z.string(), z.string()).optional().describe(descriptions.inputs),
  postProcessingContract: postProcessingContractSchema,
});

export type PostProcessingContract = z.infer<typeof postProcessingContractSchema>;
export type CodeInterpreterCall = z.infer<typeof codeInterpreterCallSchema>;
