import { createToolError, type ToolError, receivedType } from "../../../errors/tool-error.ts";
import type { IdentityContext } from "../../../execute/identity/identity-context.ts";
import type { IdentityStore } from "../../../execute/identity/create-identity-store.ts";
import { newHandleNote } from "../../../prompts/mcp-server.ts";
import type { McpConnection } from "./mcp-connection.ts";
import type { ConnectionRegistry } from "./connection-registry.ts";

/** Finds the connection of a call: by the transport that it came on, or by the handle in its arguments. */
export interface ConnectionAccess {
  readonly isByHandle: boolean;
  /** The transport's connection; null for access by handle. */
  readonly own: McpConnection | null;
  /** Whom the bearer token of the current request stands for. */
  subject(): string | null;
  find(id: string): McpConnection | null;
  enter(call: { tool: string; handle: unknown }): { ok: true; entered: EnteredConnection } | { ok: false; toolError: ToolError };
}

/** A connection while one call uses it. */
export interface EnteredConnection {
  readonly connection: McpConnection;
  readonly identity: IdentityContext;
  /** Whether the next call can use the same sandbox. */
  readonly keepsSandbox: boolean;
  /** Added to the result of the call. */
  readonly fields: Readonly<Record<string, unknown>>;
  leave(options: { readonly wasAborted: boolean }): Promise<void>;
}

export interface AccessOptions extends Pick<ConnectionAccess, "subject"> {
  readonly registry: ConnectionRegistry;
  readonly identities: IdentityStore;
  readonly tenant: string;
}

/** All calls of a transport share one connection. */
export function accessByConnection(options: AccessOptions, first: McpConnection): ConnectionAccess {
  const find = (): McpConnection => options.registry.takeOver(first, options.subject());
  return {
    isByHandle: false,
    subject: () => options.subject(),
    get own() {
      return find();
    },
    find,
    enter: () => ({ ok: true, entered: enterExisting(options, find()).entered }),
  };
}

/** For stateless clients: every result has a handle, and a call that passes it continues on the same connection. */
export function accessByHandle(options: AccessOptions): ConnectionAccess {
  const { registry, tenant, subject } = options;
  const find = (id: string): McpConnection | null => {
    const found = registry.find({ tenant, id });
    return found && registry.takeOver(found, subject());
  };
  return {
    isByHandle: true,
    own: null,
    subject,
    find,
    enter({ tool, handle }) {
      if (handle === undefined) return { ok: true, entered: enterNew(options) };
      if (typeof handle !== "string") return { ok: false, toolError: handleNotAString(tool, handle) };
      const connection = find(handle);
      if (connection === null) return { ok: false, toolError: unknownHandle(tool) };
      const { entered, endUse } = enterExisting(options, connection);
      const leave: EnteredConnection["leave"] = async ({ wasAborted }) => {
        // A stateless client that disconnects is noticed only because it closes the stream of its answer.
        if (endUse() && wasAborted) registry.markDisconnected(connection);
      };
      return { ok: true, entered: { ...entered, fields: { session: connection.id, state_scope: "session" }, leave } };
    },
  };
}

function enterExisting(
  { registry, identities, tenant, subject }: AccessOptions,
  connection: McpConnection,
): { readonly entered: EnteredConnection; readonly endUse: () => boolean } {
  const endUse = registry.use(connection);
  const identity = identities.open({ tenant, contextId: connection.id, subject: subject() });
  return { entered: { connection, identity, keepsSandbox: true, fields: {}, leave: async () => void endUse() }, endUse };
}

function enterNew({ registry, identities, tenant, subject }: AccessOptions): EnteredConnection {
  const connection = registry.open({ tenant, subject: subject() });
  const endUse = registry.use(connection);
  const session_note = newHandleNote(connection.id, registry.lifetimes.connectionIdleMs);
  return {
    connection,
    identity: identities.openRequest(),
    keepsSandbox: false,
    fields: { session: connection.id, state_scope: "request", session_note },
    async leave() {
      await connection.discardSandbox("");
      connection.takeNotes(); // session_note has already said it
      endUse();
    },
  };
}

function handleNotAString(tool: string, handle: unknown): ToolError {
  const issue = "must be the string that an earlier result returned as session";
  const details = [{ path: "session", issue, received_type: receivedType(handle) }];
  return createToolError({ code: "SCHEMA_TYPE_MISMATCH", tool, summary: `The call was not run: session ${issue}.`, details });
}

function unknownHandle(tool: string): ToolError {
  return createToolError({
    code: "SESSION_UNKNOWN",
    tool,
    summary: "No session has this handle: it ended or was idle for too long.",
    details: [{ path: "session", issue: "is not known", received_type: "string" }],
    hints: ["Call without session to start a new one, then store or fetch the data again."],
  });
}
