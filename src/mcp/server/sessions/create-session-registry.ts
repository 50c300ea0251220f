import { randomBytes } from "node:crypto";
import { addressArtifacts, type TenantArtifacts } from "../resources/address-artifacts.ts";
import { afterTimeout, defaultLifetimes, type McpParts, type Schedule, type SessionLifetimes } from "../mcp-parts.ts";
import { type McpSession, openMcpSession } from "./open-mcp-session.ts";
import type { Gate } from "../../../sandbox/pool.ts";

export type SessionRegistry = ReturnType<typeof createSessionRegistry>;

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

/** Every session of the process, by tenant and id. What nobody uses goes, the sandbox first. */
export function createSessionRegistry(parts: McpParts) {
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

  /** Marks it as in use until what is given back is called, which says whether it was the last use, and none began after it. A session in use does not go. */
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

  /** The client closed the connection before it had its answer. Unless it comes back, its sandbox goes soon after the last use. */
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

  /** Artifacts that this tenant's sessions published. */
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
    /** Null also for another tenant's. */
    find({ tenant, id }: { readonly tenant: string; readonly id: string }): McpSession | null {
      const entry = entries.get(id);
      return entry?.tenant === tenant ? entry.session : null;
    },
    use,
    lost,
    end,
    artifactsOf,
    get size(): number {
      return entries.size;
    },
    async [Symbol.asyncDispose](): Promise<void> {
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

export interface SpareSandboxesOptions {
  readonly gate: Pick<Gate, "waiting" | "onWaiting">;
  readonly after: Schedule;
  readonly lifetimes: Pick<SessionLifetimes, "spareMs">;
}

const why =
  "Somebody waited for a sandbox, and this session's, which had run nothing for longest, was given up: files of earlier cells are gone, aliases are there. The next cell says what became of the variables.";

/** Sandboxes of sessions that run nothing. When somebody waits for a sandbox, the one that has run nothing for longest is given up. */
export function createSpareSandboxes({ gate, after, lifetimes }: SpareSandboxesOptions) {
  /** Those that have run nothing for long enough, the longest first. */
  const spare = new Set<McpSession>();
  /** Those that have not yet, with what calls off the wait. */
  const resting = new Map<McpSession, () => void>();
  const stopGivingUp = gate.onWaiting(giveUp);
  let beingFreed = 0;

  /** Its last cell is over. */
  function add(session: McpSession): void {
    const isSpare = (): void => {
      resting.delete(session);
      spare.add(session);
      if (gate.waiting > beingFreed) giveUp();
    };
    remove(session);
    resting.set(session, after(lifetimes.spareMs, isSpare));
  }

  /** A cell begins, or the session ends. */
  function remove(session: McpSession): void {
    resting.get(session)?.();
    resting.delete(session);
    spare.delete(session);
  }

  /** One after the other, as long as somebody waits: not every session that ran a cell still holds a sandbox. */
  function giveUp(): boolean {
    const [session] = spare;
    if (session === undefined) return false;
    spare.delete(session);
    beingFreed += 1;
    void session
      .giveUpSandbox(why)
      .catch(() => {})
      .finally(() => {
        beingFreed -= 1;
        if (gate.waiting > beingFreed) giveUp();
      });
    return true;
  }

  return { add, remove, [Symbol.dispose]: stopGivingUp };
}
