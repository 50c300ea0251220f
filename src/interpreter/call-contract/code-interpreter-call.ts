import { z } from "zod";

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

/** What bounds the work of checking a call, not of running it. */
export const callLimits = { aliases: 256, reasonCharacters: 2_000 } as const;

/** What a call declares before it runs, and is held to afterwards. */
export const postProcessingContractSchema = z
  .strictObject({
    operation: z.enum(contractOperations).describe("What kind of derivation this is."),
    reason: z.string().trim().min(1).max(callLimits.reasonCharacters).describe("Why Python is needed here, in one sentence."),
    inputAliases: z
      .array(z.string())
      .max(callLimits.aliases)
      .describe("Aliases of the tool outputs that the code derives from; at least one."),
    expectedArtifacts: z
      .array(z.enum(artifactKinds))
      .max(callLimits.aliases)
      .describe('Kinds that the code emits: "image" for save_figure, "chart" for render_chart, [] for a computation only.'),
  })
  .describe("What the code is for and what it gives out. Checked before it runs and again afterwards.");

/** The published schema of the tool. What it cannot say (known aliases, names, Python) is checked by `validateCodeInterpreterContract`. */
export const codeInterpreterCallSchema = z.strictObject({
  code: z.string().describe("Python 3.13. Read tool outputs by their alias; call set_result(value) with the final value."),
  inputs: z
    .record(z.string(), z.string())
    .optional()
    .describe("Friendlier names in this cell: local name to alias. Aliases are bound under their own names anyway."),
  postProcessingContract: postProcessingContractSchema,
});

export type PostProcessingContract = z.infer<typeof postProcessingContractSchema>;
export type CodeInterpreterCall = z.infer<typeof codeInterpreterCallSchema>;
