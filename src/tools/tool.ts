import { z } from "zod";
import { serializeToolError, type ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { parseArguments, type RefusalFacts } from "../errors/parse-arguments.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { JsonSchema, ToolAnnotations } from "./backend-tool.ts";

/** A tool of our own, defined once for every way in: the model of a turn, an AI SDK program, an MCP client. `Context` is what it works on. */
export interface Tool<Context, Result = ToolCallResult> {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** Checks its input itself: a call that breaks the schema gets a result with an error. Rejects with `signal.reason` only. */
  run(input: unknown, context: Context): Promise<Result>;
}

export interface ToolCallResult {
  /** `refused`: nothing was run. */
  readonly status: "ok" | "error" | "refused";
  /** What a model reads: the JSON text of an object, with the error in it when the call failed. Numbers past 2^53 are exact in it. */
  readonly text: string;
  readonly error: ToolError | ForeignToolError | null;
  /** What was kept as evidence, the main part first. */
  readonly aliases?: readonly string[];
  /** Those of the aliases that `text` does not show whole. */
  readonly cutAliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
}

export interface ToolDefinition<Schema extends z.ZodType, Context> extends Omit<Tool<Context>, "inputSchema" | "run"> {
  readonly input: Schema;
  /** What a call that breaks the schema is told, beside what is wrong with it. */
  readonly refusal?: Partial<Omit<RefusalFacts, "tool">> | undefined;
  run(input: z.infer<Schema>, context: Context): Promise<ToolCallResult>;
}

/** A tool from one schema, which is published and held against every call. */
export function defineTool<Schema extends z.ZodType, Context>(definition: ToolDefinition<Schema, Context>): Tool<Context> {
  const { input: schema, refusal, run, ...tool } = definition;
  return {
    ...tool,
    inputSchema: z.toJSONSchema(schema, { io: "input" }),
    async run(input, context) {
      const parsed = parseArguments(schema, input, { tool: tool.name, lead: "The tool was not called", ...refusal });
      return parsed.ok ? await run(parsed.data, context) : toErrorResult(parsed.toolError);
    },
  };
}

/** The result of a call that did not do what it was asked for. */
export function toErrorResult(error: ToolError | ForeignToolError, status: "error" | "refused" = "refused"): ToolCallResult {
  return { status, text: `{"status":"${status}","error":${serializeToolError(error)}}`, error };
}
