import type { IdentityConfiguration } from "./identity-configuration.ts";
import type { IdentityContext, IdentityState } from "./identity-context.ts";
import { createIdentityState } from "./create-identity-state.ts";

interface IdentityKey {
  readonly tenant: string;
  /** The id of an MCP connection or a conversation. It must be hard to guess. */
  readonly contextId: string;
}

export interface IdentityStore {
  /** Opens the identity context for a request with this token. If another tenant used the context before, that tenant's state is cleared first. */
  open(request: IdentityKey & { readonly subject: string | null }): IdentityContext;
  /** A context for a single request, shared with no other request. */
  openRequest(): IdentityContext;
  /** Forgets the context, for example because its MCP connection ended. */
  delete(key: IdentityKey): void;
  readonly size: number;
}

export interface IdentityStoreOptions {
  readonly configuration: IdentityConfiguration;
  /**
   * Forgets a context that was not used for this long. Default: 24 hours. Must not be shorter than the life of an idle MCP connection, whose state would
   * vanish without a `state_reason`.
   */
  readonly idleMs?: number;
  /** Forgets the least recently used contexts above this number. Default: 10,000. */
  readonly maxContexts?: number;
  readonly now?: () => number;
}

interface StoredContext {
  readonly tenant: string;
  readonly state: IdentityState;
  usedAt: number;
}

/** Keeps identity contexts in memory, by tenant and context id. */
export function createIdentityStore(options: IdentityStoreOptions): IdentityStore {
  const { configuration, idleMs = 24 * 60 * 60_000, maxContexts = 10_000, now = Date.now } = options;
  /** Least recently used first: each use moves a context to the end. */
  const contexts = new Map<string, StoredContext>();

  function forgetIdle(): void {
    for (const [id, { usedAt }] of contexts) {
      if (now() - usedAt < idleMs && contexts.size <= maxContexts) return;
      contexts.delete(id);
    }
  }

  function open({ tenant, contextId, subject }: Parameters<IdentityStore["open"]>[0]): IdentityContext {
    forgetIdle();
    const found = contexts.get(contextId);
    const isSameTenant = found?.tenant === tenant;
    if (!isSameTenant) found?.state.end();
    const state = isSameTenant ? found.state : createIdentityState({ configuration, sessionPresent: true, swapped: found !== undefined });
    contexts.delete(contextId);
    contexts.set(contextId, { tenant, state, usedAt: now() });
    forgetIdle();
    return state.open(subject);
  }

  return {
    open,
    openRequest: () => createIdentityState({ configuration, sessionPresent: false }).open(null),
    delete({ tenant, contextId }) {
      if (contexts.get(contextId)?.tenant === tenant) contexts.delete(contextId);
    },
    get size() {
      forgetIdle();
      return contexts.size;
    },
  };
}
