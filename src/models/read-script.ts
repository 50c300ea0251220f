import { readFile } from "node:fs/promises";
import { problemsOfZod } from "../errors/schema-problems.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { modelScriptSchema, type ModelScript } from "./model-settings.ts";

/** A script from its file. Throws UsageError with everything that is wrong with it. */
export async function readScript(file: string, signal?: AbortSignal): Promise<ModelScript> {
  return parseScript(await read(file, signal), file);
}

export function parseScript(text: string, file: string): ModelScript {
  const value = parse(text, file);
  const { success, data, error } = modelScriptSchema.safeParse(value);
  if (success) return data;
  const problems = problemsOfZod({ schema: modelScriptSchema, value, issues: error.issues });
  throw new UsageError({
    code: "MODEL_SCRIPT_INVALID",
    message: `The script of the model is wrong (${file}):\n${problems.map(({ path, problem }) => `  ${path || "the whole"}: ${problem}`).join("\n")}`,
    hint: "A script is {plan?, steps: [{toolCalls: [{tool, input}]} | {text}], synthesis?}; see docs/models.md.",
    details: { problems: problems.map(({ path, problem }) => ({ path, problem })) },
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
