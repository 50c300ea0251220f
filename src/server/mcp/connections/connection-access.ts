import { createToolError, type ToolError } from "../../../errors/tool-error.ts";
import { receivedType } from "../../../errors/received-type.ts";
import type { IdentityContext } from "../../../execute/identity/identity-context.ts";
import type { IdentityStore } from "../../../execute/identity/create-identity-store.ts";
import type { McpConnection } from "./open-mcp-connection.ts";
import { words, type ConnectionRegistry } from "./connection-registry.ts";

/** How a call gets its session: from the connection that it came on, or from the handle that it passes back. */
export interface ConnectionAccess {
  readonly isByHandle: boolean;
  /** The connection's session; null where every call has its own. */
  readonly own: McpConnection | null;
  find(id: string): McpConnection | null;
  enter(call: { readonly tool: string; readonly handle: unknown }): Entry;
}

export type Entry = { readonly ok: true; readonly entered: EnteredConnection } | { readonly ok: false; readonly toolError: ToolError };

export interface EnteredConnection {
  readonly session: McpConnection;
  /** Identity, region and profile as this call sees them. */
  readonly identity: IdentityContext;
  /** Whether the sandbox is there for the next call. */
  readonly keepsSandbox: boolean;
  /** What the answer has to say about the session beside its own words. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** `wasAborted`: nobody waits for the answer any more. */
  leave(options: { readonly wasAborted: boolean }): Promise<void>;
}

export interface AccessOptions {
  readonly registry: ConnectionRegistry;
  readonly identities: IdentityStore;
  readonly tenant: string;
  /** Of the bearer token that came with the request that is served now. */
  tokenHash(): string | null;
}

/** One session for all that comes over a connection. */
export function accessByConnection(options: AccessOptions, session: McpConnection): ConnectionAccess {
  return { isByHandle: false, own: session, find: () => session, enter: () => ({ ok: true, entered: enterKept(options, session) }) };
}

/** For clients without a connection: each result has a handle, and a call that passes it back goes on where that one ended. */
export function accessByHandle(options: AccessOptions): ConnectionAccess {
  const { registry, tenant } = options;
  const find = (id: string): McpConnection | null => registry.find({ tenant, id });
  return {
    isByHandle: true,
    own: null,
    find,
    enter({ tool, handle }) {
      if (handle === undefined) return { ok: true, entered: enterNew(options) };
      if (typeof handle !== "string") return { ok: false, toolError: notAHandle(tool, handle) };
      const session = find(handle);
      if (session === null) return { ok: false, toolError: unknownSession(tool) };
      const entered = enterKept(options, session);
      const leave: EnteredConnection["leave"] = async ({ wasAborted }) => {
        // Without a connection, a client that goes away can only be seen to close the stream of its answer.
        if (entered.leaveNow() && wasAborted) registry.lost(session);
      };
      return { ok: true, entered: { ...entered, fields: { session: session.id, state_scope: "session" }, leave } };
    },
  };
}

function enterKept(
  { registry, identities, tenant, tokenHash }: AccessOptions,
  session: McpConnection,
): EnteredConnection & { leaveNow(): boolean } {
  const leaveNow = registry.use(session);
  const identity = identities.open({ tenant, contextId: session.id, tokenHash: tokenHash() });
  return { session, identity, keepsSandbox: true, fields: {}, leaveNow, leave: async () => void leaveNow() };
}

function enterNew({ registry, identities, tenant }: AccessOptions): EnteredConnection {
  const session = registry.open({ tenant });
  const leave = registry.use(session);
  const kept = words(registry.lifetimes.sessionIdleMs);
  const session_note = `No session was passed: the sandbox of this call is gone, its aliases are kept for ${kept}. Pass "session": ${JSON.stringify(session.id)} with the next call to use them, and to keep variables from then on.`;
  return {
    session,
    identity: identities.openRequest(),
    keepsSandbox: false,
    fields: { session: session.id, state_scope: "request", session_note },
    async leave() {
      await session.freeSandbox("");
      session.takeNotes(); // it was told before
      leave();
    },
  };
}

function notAHandle(tool: string, handle: unknown): ToolError {
  const issue = "must be the text that an earlier result gave as session";
  const details = [{ path: "session", issue, received_type: receivedType(handle) }];
  return createToolError({ code: "SCHEMA_TYPE_MISMATCH", tool, summary: `The call was not run: session ${issue}.`, details });
}

function unknownSession(tool: string): ToolError {
  return createToolError({
    code: "SESSION_UNKNOWN",
    tool,
    summary: "There is no session with this handle: it ended, or was not used for too long.",
    details: [{ path: "session", issue: "is not known", received_type: "string" }],
    hints: ["Call without session to begin a new one, and store or fetch the data again."],
  });
}
