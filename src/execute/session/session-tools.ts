import type { ToolAnnotations } from "../../tools/contract.ts";
import type { SessionAnswer, SessionContext } from "./contract.ts";

/** A tool of our own over the session's state: for `call_tool` in a script, and to be published beside `execute`. */
export interface SessionTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations: ToolAnnotations;
  /** No I/O, never throws. */
  run(context: SessionContext, args: Readonly<Record<string, unknown>>): SessionAnswer;
}

const readOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
/** They change nothing but this session's own choice, so they do not say `readOnlyHint: false`: that would ask a person about each. */
const sets: ToolAnnotations = { destructiveHint: false, idempotentHint: true, openWorldHint: false };

const noArguments = { type: "object", properties: {}, additionalProperties: false } as const;

function oneName(name: string, description: string): SessionTool["inputSchema"] {
  return { type: "object", properties: { [name]: { type: "string", description } }, required: [name], additionalProperties: false };
}

const gives = "Gives session_present, state_scope and state_reason.";

export const sessionTools: readonly SessionTool[] = [
  {
    name: "get_session_state",
    title: "Get session state",
    description:
      `${gives} Read-only, no I/O. Set the identity, region and profile again before the next call if state_scope is "request" or state_reason is not null. ` +
      "The scope cannot change within an execute block: one probe is enough.",
    inputSchema: noArguments,
    annotations: readOnly,
    run: (context) => ({ ok: true, value: { ...context.getSessionState() } }),
  },
  {
    name: "set_active_identity",
    title: "Set active identity",
    description: `Chooses the identity that later calls are made for. ${gives} A region or profile that is not this identity's is cleared.`,
    inputSchema: oneName("identity", "A name that get_active_context lists under identities."),
    annotations: sets,
    run: (context, args) => context.setActiveIdentity(args["identity"]),
  },
  {
    name: "set_region",
    title: "Set region",
    description: `Chooses the region that later calls are made in. ${gives}`,
    inputSchema: oneName("region", "A name that get_active_context lists under regions."),
    annotations: sets,
    run: (context, args) => context.setRegion(args["region"]),
  },
  {
    name: "set_active_profile",
    title: "Set active profile",
    description: `Chooses the profile that later calls are made with. ${gives}`,
    inputSchema: oneName("profile", "A name that get_active_context lists under profiles."),
    annotations: sets,
    run: (context, args) => context.setActiveProfile(args["profile"]),
  },
  {
    name: "get_active_context",
    title: "Get active context",
    description:
      "The active identity, region and profile by name, those that can be chosen now, and what get_session_state gives. Read-only, no I/O.",
    inputSchema: noArguments,
    annotations: readOnly,
    run: (context) => context.getActiveContext(),
  },
];
