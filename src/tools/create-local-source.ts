import { z } from "zod";
import { UsageError } from "../errors/sluice-error.ts";
import type { BackendTool, JsonSchema, ToolAnnotations, ToolCallOptions, ToolSource } from "./backend-tool.ts";

/** A function of this process as a tool. What it throws is its failure; what it returns is its answer and must have a JSON form. */
export interface LocalTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** Arguments are checked against it before the function sees them; a zod schema's defaults and transformations are not applied. */
  readonly inputSchema?: JsonSchema | z.ZodType;
  readonly outputSchema?: JsonSchema | z.ZodType;
  readonly annotations?: ToolAnnotations;
  readonly tags?: readonly string[];
  readonly execute: (args: Readonly<Record<string, unknown>>, options: ToolCallOptions) => unknown;
}

export function createLocalSource(tools: readonly LocalTool[], { name = "local" }: { name?: string } = {}): ToolSource {
  const listing = { tools: tools.map((tool) => toBackendTool(tool, name)), gap: null };
  return { name, tools: () => listing, [Symbol.asyncDispose]: () => Promise.resolve() };
}

function toBackendTool(local: LocalTool, server: string): BackendTool {
  const { name, title, description, inputSchema = { type: "object" }, outputSchema, annotations = {}, tags = [], execute } = local;
  return {
    name,
    server,
    title,
    description,
    inputSchema: toJsonSchema(inputSchema, name, "input"),
    outputSchema: outputSchema === undefined ? undefined : toJsonSchema(outputSchema, name, "output"),
    annotations,
    tags,
    call: async (args, options) => ({ output: await execute(args, options), as: "value" }),
  };
}

function toJsonSchema(schema: JsonSchema | z.ZodType, tool: string, io: "input" | "output"): JsonSchema {
  if (!(schema instanceof z.ZodType)) return schema;
  try {
    return z.toJSONSchema(schema, { io });
  } catch (cause) {
    throw new UsageError({
      code: "LOCAL_TOOL_SCHEMA",
      message: `The ${io} schema of the local tool ${JSON.stringify(tool)} has no JSON Schema.`,
      hint: "Use types that JSON has, or give the JSON Schema itself.",
      cause,
    });
  }
}
