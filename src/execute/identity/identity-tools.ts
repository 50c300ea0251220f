import { z } from "zod";
import type { ToolAnnotations } from "../../tools/backend-tool.ts";
import { defineTool, toErrorResult, type Tool, type ToolCallResult } from "../../tools/tool.ts";
import type { IdentityAnswer, IdentityContext } from "./identity-context.ts";

/** What a tool over the session's state works on. None does I/O. */
export interface IdentityToolContext {
  readonly identity: IdentityContext;
}

const readOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
/** They change nothing but this session's own choice, so they do not say `readOnlyHint: false`: that would ask a person about each. */
const sets: ToolAnnotations = { destructiveHint: false, idempotentHint: true, openWorldHint: false };

const noArguments = z.strictObject({});
const oneOf = (plural: string): z.ZodString => z.string().describe(`A name that get_active_context lists under ${plural}.`);
const gives = "Gives session_present, state_scope and state_reason.";

/** For `call_tool` in a script, and to be published beside `execute`. */
export const identityTools: readonly Tool<IdentityToolContext>[] = [
  defineTool({
    name: "get_session_state",
    title: "Get session state",
    description:
      `${gives} Read-only, no I/O. Set the identity, region and profile again before the next call if state_scope is "request" or state_reason is not null. ` +
      "The scope cannot change within an execute block: one probe is enough.",
    input: noArguments,
    annotations: readOnly,
    run: async (_, { identity }: IdentityToolContext) => toResult({ ok: true, value: { ...identity.getSessionState() } }),
  }),
  defineTool({
    name: "set_active_identity",
    title: "Set active identity",
    description: `Chooses the identity that later calls are made for. ${gives} A region or profile that is not this identity's is cleared.`,
    input: z.strictObject({ identity: oneOf("identities") }),
    annotations: sets,
    run: async ({ identity: name }, { identity }: IdentityToolContext) => toResult(identity.setActiveIdentity(name)),
  }),
  defineTool({
    name: "set_region",
    title: "Set region",
    description: `Chooses the region that later calls are made in. ${gives}`,
    input: z.strictObject({ region: oneOf("regions") }),
    annotations: sets,
    run: async ({ region }, { identity }: IdentityToolContext) => toResult(identity.setRegion(region)),
  }),
  defineTool({
    name: "set_active_profile",
    title: "Set active profile",
    description: `Chooses the profile that later calls are made with. ${gives}`,
    input: z.strictObject({ profile: oneOf("profiles") }),
    annotations: sets,
    run: async ({ profile }, { identity }: IdentityToolContext) => toResult(identity.setActiveProfile(profile)),
  }),
  defineTool({
    name: "get_active_context",
    title: "Get active context",
    description:
      "The active identity, region and profile by name, those that can be chosen now, and what get_session_state gives. Read-only, no I/O.",
    input: noArguments,
    annotations: readOnly,
    run: async (_, { identity }: IdentityToolContext) => toResult(identity.getActiveContext()),
  }),
];

function toResult(answer: IdentityAnswer): ToolCallResult {
  return answer.ok ? { status: "ok", text: JSON.stringify(answer.value), error: null } : toErrorResult(answer.toolError);
}
