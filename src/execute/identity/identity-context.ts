import type { ToolError } from "../../errors/tool-error.ts";

export type { Ride, IdentityConfiguration, StateChoice, StateChoices } from "./identity-configuration.ts";

export type StateReason = "no_mcp_session" | "token_swapped" | "bridge_unavailable";

/** What `get_session_state` gives, and every setter with it. */
export interface SessionStateFields {
  readonly session_present: boolean;
  readonly state_scope: "session" | "request";
  readonly state_reason: StateReason | null;
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

/** What the session adds to one call: see `ToolCallOptions`, and `extraArguments` of the check of its input. */
export interface CallExtras {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly extraArguments?: Readonly<Record<string, unknown>> | undefined;
}

/** Of a backend tool, what decides about it. */
export interface CalledTool {
  readonly name: string;
  readonly server: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** The state as one request sees it: bound to the bearer token that came with it. */
export interface IdentityContext {
  getSessionState(): SessionStateFields;
  getActiveContext(): IdentityAnswer;
  setActiveIdentity(name: unknown): IdentityAnswer;
  setRegion(name: unknown): IdentityAnswer;
  setActiveProfile(name: unknown): IdentityAnswer;
  /** The envelope that refuses a call to this tool as things are; null when it may be made. */
  refusalOf(tool: CalledTool): ToolError | null;
  toCallExtras(tool: CalledTool): CallExtras;
}

export interface IdentityState {
  /**
   * A request comes with this token (its hash; null where there are none). When another one came before, all state is cleared first, and what still runs
   * for the other one has none any more.
   */
  bearerChanged(tokenHash: string | null): void;
  /** `bearerChanged`, then the state as this request sees it. */
  open(tokenHash: string | null): IdentityContext;
  /** The session is another tenant's now: whatever still runs here has no state from here on. */
  end(): void;
}
