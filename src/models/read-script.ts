import { readFile } from "node:fs/promises";
import { z } from "zod";
import { describeSchemaIssues } from "../errors/describe-schema-issues.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { ModelScript, ScriptStep } from "./contract.ts";

const toolCall = z.strictObject({ tool: z.string().min(1), input: z.record(z.string(), z.unknown()) });

const step = z
  .strictObject({
    toolCalls: z.array(toolCall).min(1).optional(),
    text: z.string().optional(),
    usage: z.strictObject({ inputTokens: z.int().min(0), outputTokens: z.int().min(0) }).optional(),
  })
  .refine(({ toolCalls, text }) => toolCalls !== undefined || text !== undefined, "needs toolCalls or text");

/** A step has tool calls, a text, or both. */
export const modelScriptSchema: z.ZodType<ModelScript> = z.strictObject({
  plan: z.record(z.string(), z.unknown()).optional(),
  steps: z.array(step as unknown as z.ZodType<ScriptStep>).min(1),
  synthesis: z.string().optional(),
});

/** A script from its file. Throws UsageError with everything that is wrong with it. */
export async function readScript(file: string, signal?: AbortSignal): Promise<ModelScript> {
  return parseScript(await read(file, signal), file);
}

export function parseScript(text: string, file: string): ModelScript {
  const value = parse(text, file);
  const { success, data, error } = modelScriptSchema.safeParse(value);
  if (success) return data;
  const problems = describeSchemaIssues({ schema: modelScriptSchema, value, issues: error.issues });
  throw new UsageError({
    code: "MODEL_SCRIPT_INVALID",
    message: `The script of the model is wrong (${file}):\n${problems.map(({ path, problem }) => `  ${path || "the whole"}: ${problem}`).join("\n")}`,
    hint: "A script is {plan?, steps: [{toolCalls: [{tool, input}]} | {text}], synthesis?}; see docs/models.md.",
    details: { problems },
  });
}

async function read(file: string, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await readFile(file, { encoding: "utf8", signal });
  } catch (error) {
    signal?.throwIfAborted();
    const reason =
      error instanceof Error && "code" in error && error.code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new UsageError({
      code: "MODEL_SCRIPT_NOT_READ",
      message: `The script of the model cannot be read from ${file}: ${reason}.`,
      cause: error,
    });
  }
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new UsageError({
      code: "MODEL_SCRIPT_INVALID",
      message: `The script of the model is no JSON (${file}): ${(error as Error).message}`,
      cause: error,
    });
  }
}
