import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem } from "../../evidence/evidence-store.ts";
import type { CellSession } from "../../cells/open-cell-session.ts";
import type { Gate } from "../../sandbox/pool.ts";
import { createLimiter, type Limiter } from "../../concurrency/create-limiter.ts";
import { orAbort } from "../../concurrency/or-abort.ts";
import { askTable, toAskedTable, type TableQuestion, type TableReply, type TableSandbox } from "./ask-table.ts";
import { createTableSchemas, toKey, versionOf, type TableSchemas } from "./create-table-schemas.ts";

/** Tables that can be asked, each in a sandbox of its own that has it parsed and waits a while for the next question. */
export interface Tables extends AsyncDisposable {
  /** Rejects when no sandbox can be had, the file cannot be read, or on abort; what the table itself refuses is a reply. */
  ask(item: EvidenceItem, question: TableQuestion, options?: { signal?: AbortSignal | undefined }): Promise<TableReply>;
  /** Asks several small tables one after the other, all in one sandbox that ends with the last. */
  askEach(items: readonly EvidenceItem[], question: TableQuestion, options?: { signal?: AbortSignal | undefined }): Promise<TableReply[]>;
  /** What is known of tables, for all conversations. */
  readonly schemas: TableSchemas;
  close(): Promise<void>;
}

export interface TablesOptions {
  readonly openCellSession: (options?: { signal?: AbortSignal }) => Promise<CellSession>;
  /** The runtime's: a table that waits gives up its sandbox when somebody else waits for one. */
  readonly gate?: Pick<Gate, "places" | "waiting" | "onWaiting"> | undefined;
  /** Tables open at once; a quarter of the places unless told. */
  readonly maxOpen?: number | undefined;
  readonly idleMs?: number | undefined;
  /** What nobody waits for any more may still be answered within this time, and then leaves its table ready for the next question. */
  readonly graceMs?: number | undefined;
}

interface OpenTable extends TableSandbox {
  readonly key: string;
  /** Aborted when the table is given up. */
  readonly dropped: AbortController;
  /** Gives its place back; undefined while it waits for one. */
  leave?: () => void;
  /** Questions that are asked or wait. */
  busy: number;
  /** Those of them whose askers have not given up. */
  wanted: number;
  usedAt: number;
}

const LOOK_EVERY_MS = 250;

export function createTables(options: TablesOptions): Tables {
  return new SandboxTables(options);
}

class SandboxTables implements Tables {
  readonly schemas: TableSchemas = createTableSchemas(this);
  readonly #options: TablesOptions;
  readonly #limiter: Limiter;
  readonly #open = new Map<string, OpenTable>();
  /** Those that answer one `askEach` and end with it. */
  readonly #single = new Set<Promise<CellSession>>();
  readonly #closing = new Set<Promise<void>>();
  readonly #stopGivingUp: (() => void) | undefined;
  #watch: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: TablesOptions) {
    const { gate, maxOpen = Math.max(1, Math.floor((gate?.places ?? 4) / 4)) } = options;
    this.#options = options;
    this.#limiter = createLimiter({ places: maxOpen });
    this.#limiter.onWaiting(() => this.#giveUp());
    this.#stopGivingUp = gate?.onWaiting(() => this.#giveUp());
  }

  async ask(item: EvidenceItem, question: TableQuestion, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<TableReply> {
    this.#refuseClosed();
    const { graceMs = 1000 } = this.#options;
    const version = versionOf(item);
    signal?.throwIfAborted();
    const table = this.#obtain(toKey(item, version));
    const asked = askTable(table, toAskedTable(item), question).finally(() => this.#release(table));
    asked.then((reply) => reply.ok || !reply.lost || this.#drop(table)).catch(() => this.#drop(table));
    table.wanted += 1;
    try {
      return { ...(await orAbort(asked, signal)), version };
    } finally {
      table.wanted -= 1;
      const patienceMs = table.leave === undefined ? 0 : graceMs; // one that has no sandbox yet is not waited for
      if (signal?.aborted === true) setTimeout(() => table.busy > 0 && table.wanted === 0 && this.#drop(table), patienceMs).unref();
    }
  }

  async askEach(
    items: readonly EvidenceItem[],
    question: TableQuestion,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<TableReply[]> {
    this.#refuseClosed();
    const session = this.#options.openCellSession(signal === undefined ? {} : { signal });
    const bound = new Set<string>();
    this.#single.add(session);
    try {
      const replies: TableReply[] = [];
      for (const item of items) {
        const version = versionOf(item);
        replies.push({ ...(await orAbort(askTable({ session, bound }, toAskedTable(item), question), signal)), version });
      }
      return replies;
    } finally {
      this.#single.delete(session);
      this.#closeLater(session);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    this.#stopGivingUp?.();
    for (const table of this.#open.values()) this.#drop(table);
    for (const session of this.#single) this.#closeLater(session);
    await Promise.all(this.#closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #refuseClosed(): void {
    if (this.#closed) throw tablesClosed();
  }

  /** It counts as busy from here on, so that nobody gives it up before it is asked. */
  #obtain(key: string): OpenTable {
    const table = this.#open.get(key) ?? this.#openTable(key);
    table.busy += 1;
    return table;
  }

  #openTable(key: string): OpenTable {
    const dropped = new AbortController();
    const session = this.#limiter.enter(dropped.signal).then((leave) => {
      table.leave = leave;
      if (dropped.signal.aborted) leave(); // given up in the moment in which its turn came
      dropped.signal.throwIfAborted();
      return this.#options.openCellSession();
    });
    const table: OpenTable = { key, session, dropped, bound: new Set(), busy: 0, wanted: 0, usedAt: Date.now() };
    session.catch(() => this.#drop(table));
    this.#open.set(key, table);
    this.#watch ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
    return table;
  }

  #release(table: OpenTable): void {
    table.busy -= 1;
    table.usedAt = Date.now();
    if (this.#limiter.waiting > 0) this.#giveUp();
  }

  #drop(table: OpenTable): void {
    if (this.#open.get(table.key) !== table) return;
    this.#open.delete(table.key);
    table.dropped.abort(this.#closed ? tablesClosed() : undefined);
    table.leave?.();
    this.#closeLater(table.session);
  }

  #closeLater(session: Promise<CellSession>): void {
    const done = session.then((one) => one.close()).catch(() => {});
    this.#closing.add(done);
    void done.finally(() => this.#closing.delete(done));
  }

  /** Those that nobody asks now, the one asked longest ago first. */
  #idle(): OpenTable[] {
    return [...this.#open.values()].filter(({ busy }) => busy === 0).sort((a, b) => a.usedAt - b.usedAt);
  }

  #giveUp(): boolean {
    const [idlest] = this.#idle();
    if (idlest === undefined) return false;
    this.#drop(idlest);
    return true;
  }

  /** Gives up what nobody has asked for a while, and one that became idle while others wait for a sandbox. */
  #look(): void {
    const { gate, idleMs = 60_000 } = this.#options;
    for (const table of this.#idle()) if (Date.now() - table.usedAt > idleMs) this.#drop(table);
    if ((gate?.waiting ?? 0) > 0) this.#giveUp();
    if (this.#open.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }
}

function tablesClosed(): UsageError {
  return new UsageError({ code: "TABLES_CLOSED", message: "Tables cannot be asked any more: the runtime is closing." });
}
