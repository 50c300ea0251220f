import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem } from "../../evidence/evidence-store.ts";
import type { CellSession } from "../../cells/open-cell-session.ts";
import type { Gate } from "../../sandbox/pool.ts";
import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import type { DataCallOptions } from "../conversation-data.ts";
import { createTableSchemas, toTableKey, versionOf, type TableSchemas } from "./create-table-schemas.ts";
import { queryTable, toQueriedTable, type TableQuery, type TableReply, type TableSandbox } from "./query-table.ts";

/** Tables that can be queried. Each has a sandbox of its own, which keeps the parsed table for a while for the next query. */
export interface Tables extends AsyncDisposable {
  /** Rejects if there is no sandbox, if the file cannot be read, or on abort. A refusal by the table itself is a reply. */
  query(item: EvidenceItem, query: TableQuery, options?: DataCallOptions): Promise<TableReply>;
  /** Runs the same query on several small tables, one after the other, in one sandbox that is closed at the end. */
  queryEach(items: readonly EvidenceItem[], query: TableQuery, options?: DataCallOptions): Promise<TableReply[]>;
  /** The schemas of tables, shared by all conversations. */
  readonly schemas: TableSchemas;
  close(): Promise<void>;
}

export interface TablesOptions {
  readonly openCellSession: (options?: { signal?: AbortSignal }) => Promise<CellSession>;
  /** The gate of the runtime. An idle table gives up its sandbox when another call waits for one. */
  readonly gate?: Pick<Gate, "places" | "waiting" | "onWaiting"> | undefined;
  /** Most tables open at the same time. Default: a quarter of the places of the gate. */
  readonly maxOpen?: number | undefined;
  /** How long an idle table keeps its sandbox. Default: 60 s. */
  readonly idleMs?: number | undefined;
  /** How long a query may continue after all its callers aborted. If it finishes in time, its table stays open. Default: 1 s. */
  readonly graceMs?: number | undefined;
}

interface OpenTable extends TableSandbox {
  readonly key: string;
  /** Aborted when the table is closed. */
  readonly closed: AbortController;
  /** Frees the place at the limiter. Undefined while the table waits for a place. */
  leave?: () => void;
  /** Queries that run or wait. */
  activeQueries: number;
  /** Callers that have not aborted. */
  waitingCallers: number;
  usedAt: number;
}

const CHECK_INTERVAL_MS = 250;

export function createTables(options: TablesOptions): Tables {
  return new SandboxTables(options);
}

class SandboxTables implements Tables {
  readonly schemas: TableSchemas = createTableSchemas(this);
  readonly #options: TablesOptions;
  readonly #limiter: Limiter;
  readonly #open = new Map<string, OpenTable>();
  /** The sandboxes of running `queryEach` calls. */
  readonly #shared = new Set<Promise<CellSession>>();
  readonly #closing = new Set<Promise<void>>();
  readonly #stopListening: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: TablesOptions) {
    const { gate, maxOpen = Math.max(1, Math.floor((gate?.places ?? 4) / 4)) } = options;
    this.#options = options;
    this.#limiter = createLimiter({ places: maxOpen });
    this.#limiter.onWaiting(() => this.#closeLongestIdle());
    this.#stopListening = gate?.onWaiting(() => this.#closeLongestIdle());
  }

  async query(item: EvidenceItem, query: TableQuery, { signal }: DataCallOptions = {}): Promise<TableReply> {
    this.#throwIfClosed();
    const { graceMs = 1000 } = this.#options;
    const version = versionOf(item);
    signal?.throwIfAborted();
    const table = this.#acquire(toTableKey(item, version));
    const reply = queryTable(table, toQueriedTable(item), query).finally(() => this.#release(table));
    reply.then((result) => result.ok || !result.lost || this.#close(table)).catch(() => this.#close(table));
    table.waitingCallers += 1;
    try {
      return { ...(await orAbort(reply, signal)), version };
    } finally {
      table.waitingCallers -= 1;
      const delayMs = table.leave === undefined ? 0 : graceMs; // a table without a sandbox gets no grace period
      if (signal?.aborted === true)
        setTimeout(() => table.activeQueries > 0 && table.waitingCallers === 0 && this.#close(table), delayMs).unref();
    }
  }

  async queryEach(items: readonly EvidenceItem[], query: TableQuery, { signal }: DataCallOptions = {}): Promise<TableReply[]> {
    this.#throwIfClosed();
    const cellSession = this.#options.openCellSession({ signal });
    const bound = new Set<string>();
    this.#shared.add(cellSession);
    try {
      const replies: TableReply[] = [];
      for (const item of items) {
        const version = versionOf(item);
        replies.push({ ...(await orAbort(queryTable({ cellSession, bound }, toQueriedTable(item), query), signal)), version });
      }
      return replies;
    } finally {
      this.#shared.delete(cellSession);
      this.#closeInBackground(cellSession);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#stopListening?.();
    for (const table of this.#open.values()) this.#close(table);
    for (const cellSession of this.#shared) this.#closeInBackground(cellSession);
    await Promise.all(this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #throwIfClosed(): void {
    if (this.#closed) throw tablesClosed();
  }

  /** Opens the table if necessary, and counts the query at once, so that the table is not closed before the query starts. */
  #acquire(key: string): OpenTable {
    const table = this.#open.get(key) ?? this.#openTable(key);
    table.activeQueries += 1;
    return table;
  }

  #openTable(key: string): OpenTable {
    const closed = new AbortController();
    const cellSession = this.#limiter.enter(closed.signal).then((leave) => {
      table.leave = leave;
      if (closed.signal.aborted) leave(); // the table was closed just before it got its place
      closed.signal.throwIfAborted();
      return this.#options.openCellSession();
    });
    const table: OpenTable = { key, cellSession, closed, bound: new Set(), activeQueries: 0, waitingCallers: 0, usedAt: Date.now() };
    cellSession.catch(() => this.#close(table));
    this.#open.set(key, table);
    this.#timer ??= setInterval(() => this.#closeUnused(), CHECK_INTERVAL_MS).unref();
    return table;
  }

  #release(table: OpenTable): void {
    table.activeQueries -= 1;
    table.usedAt = Date.now();
    if (this.#limiter.waiting > 0) this.#closeLongestIdle();
  }

  #close(table: OpenTable): void {
    if (this.#open.get(table.key) !== table) return;
    this.#open.delete(table.key);
    table.closed.abort(this.#closed ? tablesClosed() : undefined);
    table.leave?.();
    this.#closeInBackground(table.cellSession);
  }

  #closeInBackground(cellSession: Promise<CellSession>): void {
    const done = cellSession.then((opened) => opened.close()).catch(() => {});
    this.#closing.add(done);
    void done.finally(() => this.#closing.delete(done));
  }

  /** Tables without queries, the least recently used first. */
  #idleTables(): OpenTable[] {
    return [...this.#open.values()].filter(({ activeQueries }) => activeQueries === 0).sort((a, b) => a.usedAt - b.usedAt);
  }

  /** Returns false if every table is in use. */
  #closeLongestIdle(): boolean {
    const [table] = this.#idleTables();
    if (table === undefined) return false;
    this.#close(table);
    return true;
  }

  /** Closes tables that were idle for too long, and one more while another call waits for a sandbox. */
  #closeUnused(): void {
    const { gate, idleMs = 60_000 } = this.#options;
    for (const table of this.#idleTables()) if (Date.now() - table.usedAt > idleMs) this.#close(table);
    if ((gate?.waiting ?? 0) > 0) this.#closeLongestIdle();
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function tablesClosed(): UsageError {
  return new UsageError({ code: "TABLES_CLOSED", message: "Cannot query the table: the runtime is closing." });
}
