import { readFile } from "node:fs/promises";
import { z } from "zod";
import { describeZodIssues } from "../errors/schema-problems.ts";
import { UsageError } from "../errors/sluice-error.ts";

const scriptStep = z
  .strictObject({
    toolCalls: z
      .array(z.strictObject({ tool: z.string().min(1), input: z.record(z.string(), z.unknown()) }).readonly())
      .min(1)
      .readonly()
      .optional(),
    text: z.string().optional(),
    /** The tokens that the step reports. Default: 0. */
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
 * The replies of a scripted model, in order (`script:FILE.json`). The planning call gets `plan` (default `{}`), each step gets the next entry of `steps`
 * (the last one repeats), synthesis gets `synthesis` (default: the last text among the steps).
 */
export type ModelScript = Readonly<z.infer<typeof modelScriptSchema>>;
export type ScriptStep = z.infer<typeof scriptStep>;

/** The purpose of a model call. A turn sends it as `providerOptions.sluice.phase` (with `step`, counted from 0); real providers ignore it. */
export type ModelPhase = "plan" | "step" | "synthesis";

/** Throws UsageError that lists every problem of the script. */
export async function readModelScript(file: string, signal?: AbortSignal): Promise<ModelScript> {
  return parseModelScript(await readText(file, signal), file);
}

export function parseModelScript(text: string, file: string): ModelScript {
  const value = parseJson(text, file);
  const { success, data, error } = modelScriptSchema.safeParse(value);
  if (success) return data;
  const problems = describeZodIssues({ schema: modelScriptSchema, value, issues: error.issues });
  throw new UsageError({
    code: "MODEL_SCRIPT_INVALID",
    message: `The model script is invalid (${file}):\n${problems.map(({ path, problem }) => `  ${path || "the script"}: ${problem}`).join("\n")}`,
    hint: "A script is {plan?, steps: [{toolCalls: [{tool, input}]} | {text}], synthesis?}; see docs/models.md.",
    details: { problems: problems.map(({ path, problem }) => ({ path, problem })) },
  });
}

async function readText(file: string, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await readFile(file, { encoding: "utf8", signal });
  } catch (error) {
    signal?.throwIfAborted();
    const reason = error instanceof Error && "code" in error && error.code === "ENOENT" ? "no such file" : (error as Error).message;
    throw new UsageError({
      code: "MODEL_SCRIPT_NOT_READ",
      message: `The model script cannot be read from ${file}: ${reason}.`,
      cause: error,
    });
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new UsageError({
      code: "MODEL_SCRIPT_INVALID",
      message: `The model script is not valid JSON (${file}): ${(error as Error).message}`,
      cause: error,
    });
  }
}
