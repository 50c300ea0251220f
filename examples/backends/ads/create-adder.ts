import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import type { z } from "zod";
import { readActiveProfile } from "./active-context.ts";
import type { Profile } from "./ads-data.ts";
import { isFailure, toFailedResult } from "./ads-failure.ts";

interface ToolFacts {
  readonly description: string;
  readonly tags: readonly string[];
  readonly outputSchema?: z.ZodObject;
  readonly isDestructive?: boolean;
}

export interface ToolAdder {
  open<Input extends z.ZodObject>(name: string, facts: ToolFacts, input: Input, answer: (args: z.output<Input>) => object): void;
  forProfile<Input extends z.ZodObject>(
    name: string,
    facts: ToolFacts,
    input: Input,
    answer: (args: z.output<Input>, profile: Profile) => object,
  ): void;
}

/** Adds tools to a server. Tools added with `open` need no active profile; the others fail without one (ACTIVE_IDENTITY_REQUIRED). */
export function createAdder(server: McpServer, headers: Headers | undefined): ToolAdder {
  function add<Input extends z.ZodObject>(
    name: string,
    facts: ToolFacts,
    inputSchema: Input,
    answer: (args: z.output<Input>, profile: Profile | null) => object,
    needsProfile: boolean,
  ): void {
    const { description, tags, outputSchema, isDestructive = false } = facts;
    const annotations = isDestructive ? { readOnlyHint: false, destructiveHint: true } : { readOnlyHint: true };
    const config = {
      description,
      inputSchema,
      annotations,
      _meta: { tags: ["ads", ...tags] },
      ...(outputSchema === undefined ? {} : { outputSchema }),
    };
    const handler = (args: unknown, context: { mcpReq: { _meta?: Record<string, unknown> } }): CallToolResult => {
      const profile = needsProfile ? readActiveProfile({ meta: context.mcpReq._meta, headers }) : null;
      if (profile !== null && isFailure(profile)) return toFailedResult(name, profile);
      const value = answer(args as z.output<Input>, profile);
      return isFailure(value) ? toFailedResult(name, value) : toResult(value);
    };
    server.registerTool(name, config, handler as never);
  }
  return {
    open: (name, facts, input, answer) => add(name, facts, input, (args) => answer(args), false),
    forProfile: (name, facts, input, answer) => add(name, facts, input, (args, profile) => answer(args, profile as Profile), true),
  };
}

function toResult(value: object): CallToolResult {
  const text = JSON.stringify(value);
  const isLarge = text.length > 1_000_000;
  const words = isLarge ? `${text.length} characters of JSON, in structuredContent` : text;
  return { content: [{ type: "text", text: words }], structuredContent: value };
}
