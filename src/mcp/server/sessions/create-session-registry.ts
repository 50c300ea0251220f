import { randomBytes } from "node:crypto";
import { addressArtifacts, type TenantArtifacts } from "../resources/address-artifacts.ts";
import { afterTimeout, defaultLifetimes, type McpParts, type SessionLifetimes } from "../mcp-parts.ts";
import { createSpareSandboxes } from "./create-spare-sandboxes.ts";
import { openMcpSession, type McpSession } from "./open-mcp-session.ts";

/** Every session of the process, by tenant and id. What nobody uses goes, the sandbox first. */
export interface SessionRegistry extends AsyncDisposable {
  readonly lifetimes: SessionLifetimes;
  open(options: NewSession): McpSession;
  /** Null also for another tenant's. */
  find(key: { readonly tenant: string; readonly id: string }): McpSession | null;
  /** Marks it as in use until what is given back is called, which says whether it was the last use, and none began after it. A session in use does not go. */
  use(session: McpSession): () => boolean;
  /** The client closed the connection before it had its answer. Unless it comes back, its sandbox goes soon after the last use. */
  lost(session: McpSession): void;
  end(session: McpSession): Promise<void>;
  /** Artifacts that this tenant's sessions published. */
  artifactsOf(tenant: string): TenantArtifacts;
  readonly size: number;
}

export interface NewSession {
  readonly tenant: string;
  /** Kept until it is ended, however long nobody calls: the client's process is there. */
  readonly isPermanent?: boolean;
  /** Called when it goes without being ended by its owner. */
  readonly onExpired?: () => void;
}

interface Entry extends NewSession {
  readonly session: McpSession;
  uses: number;
  /** How many uses there have been; the number of the newest. */
  begun: number;
  isLost: boolean;
  callOff: (() => void)[];
}

export function createSessionRegistry(parts: McpParts): SessionRegistry {
  const { after = afterTimeout } = parts;
  const lifetimes = { ...defaultLifetimes, ...parts.lifetimes };
  /** The longest unused first, because a used one is put at the end. */
  const entries = new Map<string, Entry>();
  const published = new Map<string, TenantArtifacts>();
  const spare = createSpareSandboxes({ gate: parts.runtime.gate, after, lifetimes });

  function open(wanted: NewSession): McpSession {
    const { tenant } = wanted;
    makeRoom(tenant, 1);
    const id = randomBytes(18).toString("base64url");
    const session = openMcpSession(parts, {
      id,
      tenant,
      artifacts: artifactsOf(tenant).store,
      maxBytes: lifetimes.sessionBytes,
      onFirstCell: () => spare.remove(session),
      onLastCell: () => entries.has(id) && spare.add(session),
    });
    const entry: Entry = { ...wanted, session, uses: 0, begun: 0, isLost: false, callOff: [] };
    entries.set(id, entry);
    rest(entry);
    return session;
  }

  /** A client that never comes back must not keep its tenant's others out. One that is at work stays, and so do those of other tenants. */
  function makeRoom(tenant: string, added: number): void {
    const own = [...entries.values()].filter((entry) => entry.tenant === tenant);
    let count = own.length + added;
    let bytes = own.reduce((sum, { session }) => sum + session.evidence.totalBytes, 0);
    for (const entry of own) {
      if (count <= lifetimes.maxSessions && bytes <= lifetimes.maxBytes) return;
      if (entry.uses > 0 || entry.isPermanent === true) continue;
      count -= 1;
      bytes -= entry.session.evidence.totalBytes;
      expire(entry);
    }
  }

  function rest(entry: Entry): void {
    const { sandboxIdleMs, vanishedMs, sessionIdleMs } = lifetimes;
    const [ms, why] = entry.isLost
      ? [vanishedMs, `The client closed the connection and was gone for ${words(vanishedMs)}`]
      : [sandboxIdleMs, `The sandbox was not used for ${words(sandboxIdleMs)}`];
    const note = `${why}: the sandbox was freed. Variables and files of earlier cells are gone, aliases are there.`;
    entry.callOff = [after(ms, () => void entry.session.freeSandbox(note))];
    if (entry.isPermanent !== true) entry.callOff.push(after(sessionIdleMs, () => expire(entry)));
  }

  function use(session: McpSession): () => boolean {
    const entry = entries.get(session.id);
    if (entry === undefined) return () => true;
    stopTimers(entry);
    entry.uses += 1;
    entry.begun += 1;
    entry.isLost = false;
    const own = entry.begun;
    let isOver = false;
    const wasLast = (): boolean => entry.uses === 0 && entry.begun === own;
    return () => {
      if (isOver) return wasLast();
      isOver = true;
      if (entries.has(session.id)) makeRoom(session.tenant, 0);
      entry.uses -= 1;
      if (entry.uses === 0 && entries.delete(session.id)) {
        entries.set(session.id, entry);
        rest(entry);
      }
      return wasLast();
    };
  }

  function lost(session: McpSession): void {
    const entry = entries.get(session.id);
    if (entry === undefined) return;
    entry.isLost = true;
    if (entry.uses > 0) return; // what still runs for it is being ended
    stopTimers(entry);
    rest(entry);
  }

  function expire(entry: Entry): void {
    void end(entry.session).catch(() => {});
    entry.onExpired?.();
  }

  async function end(session: McpSession): Promise<void> {
    const entry = entries.get(session.id);
    if (entry === undefined) return;
    stopTimers(entry);
    entries.delete(session.id);
    spare.remove(session);
    parts.sessions?.delete({ tenant: session.tenant, sessionId: session.id });
    await session[Symbol.asyncDispose]();
  }

  function artifactsOf(tenant: string): TenantArtifacts {
    const known = published.get(tenant);
    if (known !== undefined) return known;
    const made = addressArtifacts(parts.storesOf?.(tenant).artifacts ?? parts.artifacts);
    published.set(tenant, made);
    return made;
  }

  return {
    lifetimes,
    open,
    find({ tenant, id }) {
      const entry = entries.get(id);
      return entry?.tenant === tenant ? entry.session : null;
    },
    use,
    lost,
    end,
    artifactsOf,
    get size() {
      return entries.size;
    },
    async [Symbol.asyncDispose]() {
      spare[Symbol.dispose]();
      await Promise.all([...entries.values()].map(({ session }) => end(session)));
    },
  };
}

function stopTimers(entry: Entry): void {
  for (const callOff of entry.callOff) callOff();
  entry.callOff = [];
}

export function words(ms: number): string {
  if (ms % 60_000 === 0) return ms === 60_000 ? "a minute" : `${ms / 60_000} minutes`;
  return `${ms / 1000} s`;
}
