import { randomBytes } from "node:crypto";
import { sandboxNotes } from "../../../prompts/mcp-server.ts";
import type { Gate } from "../../../sandbox/pool.ts";
import { addressArtifacts, type TenantArtifacts } from "../create-mcp-resources.ts";
import { afterTimeout, defaultLifetimes, type McpParts, type Schedule, type ConnectionLifetimes } from "../mcp-parts.ts";
import { McpConnection } from "./mcp-connection.ts";

export interface NewConnection {
  readonly tenant: string;
  /** Whom the bearer token of the first request stands for. */
  readonly subject: string | null;
  /** Never closed for being idle. For stdio, where the connection lives as long as the client's process. */
  readonly isPermanent?: boolean;
  /** Called when the registry closes the connection because it is idle or over a limit. */
  readonly onExpired?: () => void;
}

interface Entry extends NewConnection {
  connection: McpConnection;
  /** Of the latest request. */
  subject: string | null;
  activeUses: number;
  /** Uses so far, including those that have ended. */
  useCount: number;
  isDisconnected: boolean;
  cancelTimers: (() => void)[];
}

/** All MCP connections of the process. Frees idle sandboxes, then closes idle connections. */
export class ConnectionRegistry implements AsyncDisposable {
  readonly lifetimes: ConnectionLifetimes;
  readonly #parts: McpParts;
  readonly #after: Schedule;
  /** By id, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #artifacts = new Map<string, TenantArtifacts>();
  readonly #reclaimer: ReturnType<typeof createSandboxReclaimer>;

  constructor(parts: McpParts) {
    const { after = afterTimeout } = parts;
    this.lifetimes = { ...defaultLifetimes, ...parts.lifetimes };
    this.#parts = parts;
    this.#after = after;
    this.#reclaimer = createSandboxReclaimer({ gate: parts.runtime.gate, after, lifetimes: this.lifetimes });
  }

  get size(): number {
    return this.#entries.size;
  }

  open(request: NewConnection): McpConnection {
    const { tenant } = request;
    this.#enforceLimits(tenant, 1);
    const connection = this.#create({ tenant, id: randomBytes(18).toString("base64url"), subject: request.subject });
    const entry: Entry = { ...request, connection, activeUses: 0, useCount: 0, isDisconnected: false, cancelTimers: [] };
    this.#entries.set(connection.id, entry);
    this.#startTimers(entry);
    return connection;
  }

  /**
   * The connection for a request of this subject. If the previous request was of another one, it is a new connection of the same id, without the data and
   * the sandbox of the old one; files that an operator gave are there again. Calls that still run on the old connection lose its sandbox.
   */
  takeOver(connection: McpConnection, subject: string | null): McpConnection {
    const entry = this.#entries.get(connection.id);
    if (entry === undefined) return connection;
    if (entry.subject === subject) return entry.connection;
    const old = entry.connection;
    entry.subject = subject;
    entry.connection = this.#create({ tenant: old.tenant, id: old.id, subject });
    entry.connection.note(sandboxNotes.tokenSwapped);
    this.#reclaimer.remove(old);
    void old[Symbol.asyncDispose]().catch(() => {});
    return entry.connection;
  }

  /** Null also when the connection belongs to another tenant. */
  find({ tenant, id }: { readonly tenant: string; readonly id: string }): McpConnection | null {
    const entry = this.#entries.get(id);
    return entry?.tenant === tenant ? entry.connection : null;
  }

  /** Keeps the connection open until the returned function is called. That returns true if no other use is active and none has started since. */
  use(connection: McpConnection): () => boolean {
    const entry = this.#entries.get(connection.id);
    if (entry === undefined) return () => true;
    stopTimers(entry);
    entry.activeUses += 1;
    entry.useCount += 1;
    entry.isDisconnected = false;
    const number = entry.useCount;
    let hasEnded = false;
    const wasLast = (): boolean => entry.activeUses === 0 && entry.useCount === number;
    return () => {
      if (hasEnded) return wasLast();
      hasEnded = true;
      if (this.#entries.has(connection.id)) this.#enforceLimits(connection.tenant, 0);
      entry.activeUses -= 1;
      // Deleting and adding it again makes it the most recently used.
      if (entry.activeUses === 0 && this.#entries.delete(connection.id)) {
        this.#entries.set(connection.id, entry);
        this.#startTimers(entry);
      }
      return wasLast();
    };
  }

  /** The client went away before it had its answer. Unless it returns, its sandbox is freed soon after the last use. */
  markDisconnected(connection: McpConnection): void {
    const entry = this.#entries.get(connection.id);
    if (entry === undefined) return;
    entry.isDisconnected = true;
    if (entry.activeUses > 0) return; // timers start when the last use ends
    stopTimers(entry);
    this.#startTimers(entry);
  }

  async close(connection: McpConnection): Promise<void> {
    const entry = this.#entries.get(connection.id);
    if (entry === undefined) return;
    stopTimers(entry);
    this.#entries.delete(connection.id);
    this.#reclaimer.remove(entry.connection);
    this.#parts.identities?.delete({ tenant: connection.tenant, contextId: connection.id });
    await entry.connection[Symbol.asyncDispose]();
  }

  /** The artifacts that connections of this tenant have published. */
  artifactsOf(tenant: string): TenantArtifacts {
    const known = this.#artifacts.get(tenant);
    if (known !== undefined) return known;
    const created = addressArtifacts(this.#parts.storesOf?.(tenant).artifacts ?? this.#parts.artifacts);
    this.#artifacts.set(tenant, created);
    return created;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reclaimer[Symbol.dispose]();
    await Promise.all([...this.#entries.values()].map(({ connection }) => this.close(connection)));
  }

  #create({ id, tenant, subject }: Pick<NewConnection, "tenant" | "subject"> & { readonly id: string }): McpConnection {
    const connection: McpConnection = new McpConnection(this.#parts, {
      id,
      tenant,
      artifacts: this.artifactsOf(tenant).storeOf(subject),
      maxBytes: this.lifetimes.connectionBytes,
      onBusy: () => this.#reclaimer.remove(connection),
      onIdle: () => this.#entries.get(id)?.connection === connection && this.#reclaimer.add(connection),
    });
    return connection;
  }

  /** Closes the tenant's least recently used connections until its limits hold with `added` new ones. Connections in use stay. */
  #enforceLimits(tenant: string, added: number): void {
    const ofTenant = [...this.#entries.values()].filter((entry) => entry.tenant === tenant);
    let count = ofTenant.length + added;
    let bytes = ofTenant.reduce((sum, { connection }) => sum + connection.evidence.totalBytes, 0);
    for (const entry of ofTenant) {
      if (count <= this.lifetimes.maxConnections && bytes <= this.lifetimes.maxBytes) return;
      if (entry.activeUses > 0 || entry.isPermanent === true) continue;
      count -= 1;
      bytes -= entry.connection.evidence.totalBytes;
      this.#expire(entry);
    }
  }

  #startTimers(entry: Entry): void {
    const { sandboxIdleMs, disconnectGraceMs, connectionIdleMs } = this.lifetimes;
    const [ms, note] = entry.isDisconnected
      ? [disconnectGraceMs, sandboxNotes.disconnected(disconnectGraceMs)]
      : [sandboxIdleMs, sandboxNotes.idle(sandboxIdleMs)];
    entry.cancelTimers = [this.#after(ms, () => void entry.connection.discardSandbox(note))];
    if (entry.isPermanent !== true) entry.cancelTimers.push(this.#after(connectionIdleMs, () => this.#expire(entry)));
  }

  #expire(entry: Entry): void {
    void this.close(entry.connection).catch(() => {});
    entry.onExpired?.();
  }
}

function stopTimers(entry: Entry): void {
  for (const cancel of entry.cancelTimers) cancel();
  entry.cancelTimers = [];
}

export interface SandboxReclaimerOptions {
  readonly gate: Pick<Gate, "waiting" | "onWaiting">;
  readonly after: Schedule;
  readonly lifetimes: Pick<ConnectionLifetimes, "reclaimAfterMs">;
}

/** When a call waits for a sandbox, frees the sandboxes of connections that run nothing, the longest idle first. */
export function createSandboxReclaimer({ gate, after, lifetimes }: SandboxReclaimerOptions) {
  /** Idle for `reclaimAfterMs` or more, the longest first. */
  const reclaimable = new Set<McpConnection>();
  /** Idle for less than that, with the function that cancels the timer. */
  const waiting = new Map<McpConnection, () => void>();
  const stopListening = gate.onWaiting(reclaimNext);
  let beingFreed = 0;

  /** Call when the last cell of a connection has ended. */
  function add(connection: McpConnection): void {
    const becomeReclaimable = (): void => {
      waiting.delete(connection);
      reclaimable.add(connection);
      if (gate.waiting > beingFreed) reclaimNext();
    };
    remove(connection);
    waiting.set(connection, after(lifetimes.reclaimAfterMs, becomeReclaimable));
  }

  /** Call when a cell starts or the connection closes. */
  function remove(connection: McpConnection): void {
    waiting.get(connection)?.();
    waiting.delete(connection);
    reclaimable.delete(connection);
  }

  /** Repeats while a call waits, because not every connection that ran a cell still holds a sandbox. */
  function reclaimNext(): boolean {
    const [connection] = reclaimable;
    if (connection === undefined) return false;
    reclaimable.delete(connection);
    beingFreed += 1;
    void connection
      .releaseIdleSandbox(sandboxNotes.reclaimed)
      .catch(() => {})
      .finally(() => {
        beingFreed -= 1;
        if (gate.waiting > beingFreed) reclaimNext();
      });
    return true;
  }

  return { add, remove, [Symbol.dispose]: stopListening };
}
