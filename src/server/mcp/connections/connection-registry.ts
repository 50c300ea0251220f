import { randomBytes } from "node:crypto";
import { addressArtifacts, type TenantArtifacts } from "../resources/address-artifacts.ts";
import { afterTimeout, defaultLifetimes, type McpParts, type Schedule, type ConnectionLifetimes } from "../mcp-parts.ts";
import { type McpConnection, openMcpConnection } from "./open-mcp-connection.ts";
import type { Gate } from "../../../sandbox/pool.ts";

export interface NewConnection {
  readonly tenant: string;
  /** Kept until it is ended, however long nobody calls: the client's process is there. */
  readonly isPermanent?: boolean;
  /** Called when it goes without being ended by its owner. */
  readonly onExpired?: () => void;
}

interface Entry extends NewConnection {
  readonly session: McpConnection;
  uses: number;
  /** How many uses there have been; the number of the newest. */
  begun: number;
  isLost: boolean;
  callOff: (() => void)[];
}

/** Every session of the process, by tenant and id. What nobody uses goes, the sandbox first. */
export class ConnectionRegistry implements AsyncDisposable {
  readonly lifetimes: ConnectionLifetimes;
  readonly #parts: McpParts;
  readonly #after: Schedule;
  /** The longest unused first, because a used one is put at the end. */
  readonly #entries = new Map<string, Entry>();
  readonly #published = new Map<string, TenantArtifacts>();
  readonly #spare: ReturnType<typeof createSpareSandboxes>;

  constructor(parts: McpParts) {
    const { after = afterTimeout } = parts;
    this.lifetimes = { ...defaultLifetimes, ...parts.lifetimes };
    this.#parts = parts;
    this.#after = after;
    this.#spare = createSpareSandboxes({ gate: parts.runtime.gate, after, lifetimes: this.lifetimes });
  }

  get size(): number {
    return this.#entries.size;
  }

  open(wanted: NewConnection): McpConnection {
    const { tenant } = wanted;
    this.#makeRoom(tenant, 1);
    const id = randomBytes(18).toString("base64url");
    const session = openMcpConnection(this.#parts, {
      id,
      tenant,
      artifacts: this.artifactsOf(tenant).store,
      maxBytes: this.lifetimes.sessionBytes,
      onFirstCell: () => this.#spare.remove(session),
      onLastCell: () => this.#entries.has(id) && this.#spare.add(session),
    });
    const entry: Entry = { ...wanted, session, uses: 0, begun: 0, isLost: false, callOff: [] };
    this.#entries.set(id, entry);
    this.#rest(entry);
    return session;
  }

  /** Null also for another tenant's. */
  find({ tenant, id }: { readonly tenant: string; readonly id: string }): McpConnection | null {
    const entry = this.#entries.get(id);
    return entry?.tenant === tenant ? entry.session : null;
  }

  /** Marks it as in use until what is given back is called, which says whether it was the last use, and none began after it. A session in use does not go. */
  use(session: McpConnection): () => boolean {
    const entry = this.#entries.get(session.id);
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
      if (this.#entries.has(session.id)) this.#makeRoom(session.tenant, 0);
      entry.uses -= 1;
      if (entry.uses === 0 && this.#entries.delete(session.id)) {
        this.#entries.set(session.id, entry);
        this.#rest(entry);
      }
      return wasLast();
    };
  }

  /** The client closed the connection before it had its answer. Unless it comes back, its sandbox goes soon after the last use. */
  lost(session: McpConnection): void {
    const entry = this.#entries.get(session.id);
    if (entry === undefined) return;
    entry.isLost = true;
    if (entry.uses > 0) return; // what still runs for it is being ended
    stopTimers(entry);
    this.#rest(entry);
  }

  async end(session: McpConnection): Promise<void> {
    const entry = this.#entries.get(session.id);
    if (entry === undefined) return;
    stopTimers(entry);
    this.#entries.delete(session.id);
    this.#spare.remove(session);
    this.#parts.identities?.delete({ tenant: session.tenant, contextId: session.id });
    await session[Symbol.asyncDispose]();
  }

  /** Artifacts that this tenant's sessions published. */
  artifactsOf(tenant: string): TenantArtifacts {
    const known = this.#published.get(tenant);
    if (known !== undefined) return known;
    const made = addressArtifacts(this.#parts.storesOf?.(tenant).artifacts ?? this.#parts.artifacts);
    this.#published.set(tenant, made);
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#spare[Symbol.dispose]();
    await Promise.all([...this.#entries.values()].map(({ session }) => this.end(session)));
  }

  /** A client that never comes back must not keep its tenant's others out. One that is at work stays, and so do those of other tenants. */
  #makeRoom(tenant: string, added: number): void {
    const own = [...this.#entries.values()].filter((entry) => entry.tenant === tenant);
    let count = own.length + added;
    let bytes = own.reduce((sum, { session }) => sum + session.evidence.totalBytes, 0);
    for (const entry of own) {
      if (count <= this.lifetimes.maxConnections && bytes <= this.lifetimes.maxBytes) return;
      if (entry.uses > 0 || entry.isPermanent === true) continue;
      count -= 1;
      bytes -= entry.session.evidence.totalBytes;
      this.#expire(entry);
    }
  }

  #rest(entry: Entry): void {
    const { sandboxIdleMs, vanishedMs, sessionIdleMs } = this.lifetimes;
    const [ms, why] = entry.isLost
      ? [vanishedMs, `The client closed the connection and was gone for ${words(vanishedMs)}`]
      : [sandboxIdleMs, `The sandbox was not used for ${words(sandboxIdleMs)}`];
    const note = `${why}: the sandbox was freed. Variables and files of earlier cells are gone, aliases are there.`;
    entry.callOff = [this.#after(ms, () => void entry.session.freeSandbox(note))];
    if (entry.isPermanent !== true) entry.callOff.push(this.#after(sessionIdleMs, () => this.#expire(entry)));
  }

  #expire(entry: Entry): void {
    void this.end(entry.session).catch(() => {});
    entry.onExpired?.();
  }
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
  readonly lifetimes: Pick<ConnectionLifetimes, "spareMs">;
}

const why =
  "Somebody waited for a sandbox, and this session's, which had run nothing for longest, was given up: files of earlier cells are gone, aliases are there. The next cell says what became of the variables.";

/** Sandboxes of sessions that run nothing. When somebody waits for a sandbox, the one that has run nothing for longest is given up. */
export function createSpareSandboxes({ gate, after, lifetimes }: SpareSandboxesOptions) {
  /** Those that have run nothing for long enough, the longest first. */
  const spare = new Set<McpConnection>();
  /** Those that have not yet, with what calls off the wait. */
  const resting = new Map<McpConnection, () => void>();
  const stopGivingUp = gate.onWaiting(giveUp);
  let beingFreed = 0;

  /** Its last cell is over. */
  function add(session: McpConnection): void {
    const isSpare = (): void => {
      resting.delete(session);
      spare.add(session);
      if (gate.waiting > beingFreed) giveUp();
    };
    remove(session);
    resting.set(session, after(lifetimes.spareMs, isSpare));
  }

  /** A cell begins, or the session ends. */
  function remove(session: McpConnection): void {
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
