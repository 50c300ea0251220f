import { z } from "zod";
import { UsageError } from "../errors/sluice-error.ts";
import type { BackendTool, JsonSchema, ToolAnnotations, ToolCallOptions, ToolSource } from "./backend-tool.ts";

/** A function of this process as a tool. It returns a value that can be written as JSON, or throws. */
export interface LocalTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** Arguments are validated against it before the call. Defaults and transformations of a zod schema are not applied. */
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
    isLocal: true,
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
      message: `The ${io} schema of the local tool ${JSON.stringify(tool)} cannot be converted to JSON Schema.`,
      hint: "Use types that JSON has, or pass a JSON Schema instead.",
      cause,
    });
  }
}
