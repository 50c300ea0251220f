import { z } from "zod";
import { serializeToolError, type ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { parseArguments, type RefusalFacts } from "../errors/parse-arguments.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { JsonSchema, ToolAnnotations } from "./backend-tool.ts";

/** One of Sluice's own tools, shared by turns, AI SDK programs and MCP clients. `Context` is the data that a call works on. */
export interface Tool<Context, Result = ToolCallResult> {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** Validates its input: a call that breaks the schema returns an error. Rejects only with `signal.reason`. */
  run(input: unknown, context: Context): Promise<Result>;
}

export interface ToolCallResult {
  /** `refused`: nothing ran. */
  readonly status: "ok" | "error" | "refused";
  /** What the model reads: a JSON object, with the error if the call failed. Numbers beyond 2^53 are exact. */
  readonly text: string;
  readonly error: ToolError | ForeignToolError | null;
  /** Evidence that the call added, the main part first. */
  readonly aliases?: readonly string[];
  /** The aliases that `text` shows only in part. */
  readonly cutAliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
}

export interface ToolDefinition<Schema extends z.ZodType, Context> extends Omit<Tool<Context>, "inputSchema" | "run"> {
  readonly input: Schema;
  /** Added to the error of a call that breaks the schema. */
  readonly refusal?: Partial<Omit<RefusalFacts, "tool">> | undefined;
  run(input: z.infer<Schema>, context: Context): Promise<ToolCallResult>;
}

/** For tools that only read data of this process. */
export const readOnlyAnnotations: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** Creates a tool from a schema, which is both published and used to validate every call. */
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

export function toErrorResult(error: ToolError | ForeignToolError, status: "error" | "refused" = "refused"): ToolCallResult {
  return { status, text: `{"status":"${status}","error":${serializeToolError(error)}}`, error };
}
