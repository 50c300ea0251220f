import { z } from "zod";
import { createEnvelope } from "../../errors/envelope.ts";
import type { ToolList } from "../../tools/create-tool-catalog.ts";
import type { Turn } from "../open-turn.ts";
import { callTool } from "./call-tool.ts";
import { findServer, findTool } from "./find-tool.ts";
import { refused, runCall } from "./run-call.ts";

export interface McpSkillCall {
  tool: string;
  arguments: Record<string, unknown>;
}

export const callMcpSkillSchema: z.ZodType<McpSkillCall> = z.strictObject({
  tool: z.string().min(1).describe("The name of the tool, as search and get_schema give it."),
  arguments: z.record(z.string(), z.unknown()).default({}).describe("What the tool takes, as its schema says."),
});

/** The generic dispatcher. What is recorded is the call of the tool that it names. */
export async function callMcpSkill(
  turn: Turn,
  { callId, input, list }: { callId: string; input: unknown; list: ToolList },
): Promise<string> {
  const parsed = callMcpSkillSchema.safeParse(input);
  if (!parsed.success)
    return await runCall(turn, { callId, tool: "call_mcp_skill", input }, async () => refused(malformed(parsed.error.issues)));
  const { tool: name, arguments: args } = parsed.data;
  const known = findTool(list, name);
  return await callTool(turn, { callId, name: known?.name ?? name, server: findServer(turn, name), args, known });
}

function malformed(issues: readonly z.core.$ZodIssue[]): ReturnType<typeof createEnvelope> {
  const details = issues.map(({ path, message }) => ({ path: path.join("."), issue: message, received_type: "object" }));
  return createEnvelope({
    code: "SCHEMA_VALIDATION_FAILED",
    tool: "call_mcp_skill",
    summary: `Nothing was called: ${details[0]?.path || "the call"} is not as the schema says.`,
    details,
    examples: [{ tool: "get_price", arguments: { symbol: "A" } }],
  });
}
