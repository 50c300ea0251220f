import type { ToolError } from "../../errors/tool-error.ts";

/** The fields that `get_session_state` and every setter return. */
export interface SessionStateFields {
  readonly session_present: boolean;
  readonly state_scope: "session" | "request";
  readonly state_reason: "no_mcp_session" | "token_swapped" | "bridge_unavailable" | null;
}

export interface ActiveNames {
  readonly identity: string | null;
  readonly region: string | null;
  readonly profile: string | null;
}

export type StateKind = keyof ActiveNames;

export type IdentityAnswer =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly toolError: ToolError };

/** What the identity context adds to one call of a backend tool. */
export interface CallExtras {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
}

/** The facts about a backend tool that decide what is added to its call. */
export interface CalledTool {
  readonly name: string;
  readonly server: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** The active identity, region and profile of one request, bound to the bearer token of that request. */
export interface IdentityContext {
  getSessionState(): SessionStateFields;
  getActiveContext(): IdentityAnswer;
  setActiveIdentity(name: unknown): IdentityAnswer;
  setRegion(name: unknown): IdentityAnswer;
  setActiveProfile(name: unknown): IdentityAnswer;
  /** The tool error if a call of this tool must be refused now; null if it is admitted. */
  refusalOf(tool: CalledTool): ToolError | null;
  toCallExtras(tool: CalledTool): CallExtras;
}

export interface IdentityState {
  /**
   * Opens the context of a request of this subject (null without authentication). If the previous request was of another one, all state is cleared first,
   * and requests that still run for the previous subject lose it.
   */
  open(subject: string | null): IdentityContext;
  /** Another tenant took over the context: running requests lose their state. */
  end(): void;
}
