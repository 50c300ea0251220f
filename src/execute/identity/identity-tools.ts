import { z } from "zod";
import { describeIdentityChoice, identityToolDescriptions } from "../../prompts/code-mode-tools.ts";
import type { ToolAnnotations } from "../../tools/backend-tool.ts";
import { defineTool, readOnlyAnnotations, toErrorResult, type Tool, type ToolCallResult } from "../../tools/tool.ts";
import type { IdentityAnswer, IdentityContext } from "./identity-context.ts";

export interface IdentityToolContext {
  readonly identity: IdentityContext;
}

/** The setters change only this identity context. The tool policy does not apply to them. */
const setterAnnotations: ToolAnnotations = { destructiveHint: false, idempotentHint: true, openWorldHint: false };

/** The five tools over an identity context. Scripts call them with `call_tool`; they are also published beside `execute`. They do no I/O. */
export const identityTools: readonly Tool<IdentityToolContext>[] = [
  defineTool({
    name: "get_session_state",
    title: "Get session state",
    description: identityToolDescriptions.get_session_state,
    input: z.strictObject({}),
    annotations: readOnlyAnnotations,
    run: async (_, { identity }: IdentityToolContext) => toResult({ ok: true, value: { ...identity.getSessionState() } }),
  }),
  defineTool({
    name: "set_active_identity",
    title: "Set active identity",
    description: identityToolDescriptions.set_active_identity,
    input: z.strictObject({ identity: z.string().describe(describeIdentityChoice("identities")) }),
    annotations: setterAnnotations,
    run: async ({ identity: name }, { identity }: IdentityToolContext) => toResult(identity.setActiveIdentity(name)),
  }),
  defineTool({
    name: "set_region",
    title: "Set region",
    description: identityToolDescriptions.set_region,
    input: z.strictObject({ region: z.string().describe(describeIdentityChoice("regions")) }),
    annotations: setterAnnotations,
    run: async ({ region }, { identity }: IdentityToolContext) => toResult(identity.setRegion(region)),
  }),
  defineTool({
    name: "set_active_profile",
    title: "Set active profile",
    description: identityToolDescriptions.set_active_profile,
    input: z.strictObject({ profile: z.string().describe(describeIdentityChoice("profiles")) }),
    annotations: setterAnnotations,
    run: async ({ profile }, { identity }: IdentityToolContext) => toResult(identity.setActiveProfile(profile)),
  }),
  defineTool({
    name: "get_active_context",
    title: "Get active context",
    description: identityToolDescriptions.get_active_context,
    input: z.strictObject({}),
    annotations: readOnlyAnnotations,
    run: async (_, { identity }: IdentityToolContext) => toResult(identity.getActiveContext()),
  }),
];

function toResult(answer: IdentityAnswer): ToolCallResult {
  return answer.ok ? { status: "ok", text: JSON.stringify(answer.value), error: null } : toErrorResult(answer.toolError);
}
