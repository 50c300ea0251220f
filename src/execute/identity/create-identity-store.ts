import type { IdentityConfiguration, IdentityContext, IdentityState } from "./identity-context.ts";
import { createIdentityState } from "./create-identity-state.ts";

export interface IdentityKey {
  readonly tenant: string;
  /** What nobody can guess: the transport's own, or the handle that a client without one passes back. */
  readonly contextId: string;
}

export interface IdentityStore {
  /**
   * The session's state as a request with this token sees it. A session that comes back with the token of another tenant begins anew, and the other
   * tenant's state is gone before this returns.
   */
  open(request: IdentityKey & { readonly tokenHash: string | null }): IdentityContext;
  /** For a request without a session: state that nobody else sees, and that ends with it. */
  openRequest(): IdentityContext;
  /** The session ended. */
  delete(key: IdentityKey): void;
  readonly size: number;
}

export interface IdentityStoreOptions {
  readonly configuration: IdentityConfiguration;
  /** A session that nobody used for this long is forgotten. At least as long as the transport keeps its sessions, or state is lost in silence. */
  readonly idleMs?: number;
  readonly maxContexts?: number;
  readonly now?: () => number;
}

interface Kept {
  readonly tenant: string;
  readonly state: IdentityState;
  usedAt: number;
}

export function createIdentityStore(options: IdentityStoreOptions): IdentityStore {
  const { configuration, idleMs = 24 * 60 * 60_000, maxContexts = 10_000, now = Date.now } = options;
  /** The longest unused first, because a used one is put at the end. */
  const sessions = new Map<string, Kept>();

  function forgetIdle(): void {
    for (const [id, { usedAt }] of sessions) {
      if (now() - usedAt < idleMs && sessions.size <= maxContexts) return;
      sessions.delete(id);
    }
  }

  function open({ tenant, contextId, tokenHash }: Parameters<IdentityStore["open"]>[0]): IdentityContext {
    forgetIdle();
    const found = sessions.get(contextId);
    const isOwn = found !== undefined && found.tenant === tenant;
    if (!isOwn) found?.state.end();
    const state = isOwn ? found.state : createIdentityState({ configuration, sessionPresent: true, swapped: found !== undefined });
    sessions.delete(contextId);
    sessions.set(contextId, { tenant, state, usedAt: now() });
    forgetIdle();
    return state.open(tokenHash);
  }

  return {
    open,
    openRequest: () => createIdentityState({ configuration, sessionPresent: false }).open(null),
    delete({ tenant, contextId }) {
      if (sessions.get(contextId)?.tenant === tenant) sessions.delete(contextId);
    },
    get size() {
      forgetIdle();
      return sessions.size;
    },
  };
}
