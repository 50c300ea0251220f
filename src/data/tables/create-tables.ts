import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem } from "../../evidence/contract.ts";
import type { Session } from "../../interpreter/open-session.ts";
import type { Gate } from "../../sandbox/pool.ts";
import { createLimiter } from "../../concurrency/create-limiter.ts";
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
  readonly openSession: (options?: { signal?: AbortSignal }) => Promise<Session>;
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

export function createTables({ openSession, gate, maxOpen, idleMs = 60_000, graceMs = 1000 }: TablesOptions): Tables {
  const limiter = createLimiter({ places: maxOpen ?? Math.max(1, Math.floor((gate?.places ?? 4) / 4)) });
  limiter.onWaiting(giveUp);
  const open = new Map<string, OpenTable>();
  const single = new Set<Promise<Session>>();
  const closing = new Set<Promise<void>>();
  const stopGivingUp = gate?.onWaiting(giveUp);
  let watch: NodeJS.Timeout | undefined;
  let closed = false;

  async function ask(
    item: EvidenceItem,
    question: TableQuestion,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<TableReply> {
    refuseClosed();
    const version = versionOf(item);
    signal?.throwIfAborted();
    const table = obtain(toKey(item, version));
    const asked = askTable(table, toAskedTable(item), question).finally(() => release(table));
    asked.then((reply) => reply.ok || !reply.lost || drop(table)).catch(() => drop(table));
    table.wanted += 1;
    try {
      return { ...(await orAbort(asked, signal)), version };
    } finally {
      table.wanted -= 1;
      const patienceMs = table.leave === undefined ? 0 : graceMs; // one that has no sandbox yet is not waited for
      if (signal?.aborted === true) setTimeout(() => table.busy > 0 && table.wanted === 0 && drop(table), patienceMs).unref();
    }
  }

  /** It counts as busy from here on, so that nobody gives it up before it is asked. */
  function obtain(key: string): OpenTable {
    const table = open.get(key) ?? openTable(key);
    table.busy += 1;
    return table;
  }

  function openTable(key: string): OpenTable {
    const dropped = new AbortController();
    const session = limiter.enter(dropped.signal).then((leave) => {
      table.leave = leave;
      if (dropped.signal.aborted) leave(); // given up in the moment in which its turn came
      dropped.signal.throwIfAborted();
      return openSession();
    });
    const table: OpenTable = { key, session, dropped, bound: new Set(), busy: 0, wanted: 0, usedAt: Date.now() };
    session.catch(() => drop(table));
    open.set(key, table);
    watch ??= setInterval(look, LOOK_EVERY_MS).unref();
    return table;
  }

  function release(table: OpenTable): void {
    table.busy -= 1;
    table.usedAt = Date.now();
    if (limiter.waiting > 0) giveUp();
  }

  function drop(table: OpenTable): void {
    if (open.get(table.key) !== table) return;
    open.delete(table.key);
    table.dropped.abort(closed ? tablesClosed() : undefined);
    table.leave?.();
    closeLater(table.session);
  }

  function closeLater(session: Promise<Session>): void {
    const done = session.then((one) => one.close()).catch(() => {});
    closing.add(done);
    void done.finally(() => closing.delete(done));
  }

  /** Those that nobody asks now, the one asked longest ago first. */
  function idle(): OpenTable[] {
    return [...open.values()].filter(({ busy }) => busy === 0).sort((a, b) => a.usedAt - b.usedAt);
  }

  function giveUp(): boolean {
    const [idlest] = idle();
    if (idlest === undefined) return false;
    drop(idlest);
    return true;
  }

  /** Gives up what nobody has asked for a while, and one that became idle while others wait for a sandbox. */
  function look(): void {
    for (const table of idle()) if (Date.now() - table.usedAt > idleMs) drop(table);
    if ((gate?.waiting ?? 0) > 0) giveUp();
    if (open.size === 0) {
      clearInterval(watch);
      watch = undefined;
    }
  }

  async function askEach(
    items: readonly EvidenceItem[],
    question: TableQuestion,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<TableReply[]> {
    refuseClosed();
    const session = openSession(signal === undefined ? {} : { signal });
    const bound = new Set<string>();
    single.add(session);
    try {
      const replies: TableReply[] = [];
      for (const item of items) {
        const version = versionOf(item);
        replies.push({ ...(await orAbort(askTable({ session, bound }, toAskedTable(item), question), signal)), version });
      }
      return replies;
    } finally {
      single.delete(session);
      closeLater(session);
    }
  }

  function refuseClosed(): void {
    if (closed) throw tablesClosed();
  }

  async function close(): Promise<void> {
    closed = true;
    clearInterval(watch);
    stopGivingUp?.();
    for (const table of open.values()) drop(table);
    for (const session of single) closeLater(session);
    await Promise.all(closing);
  }

  return { ask, askEach, schemas: createTableSchemas({ ask, askEach }), close, [Symbol.asyncDispose]: close };
}

function tablesClosed(): UsageError {
  return new UsageError({ code: "TABLES_CLOSED", message: "Tables cannot be asked any more: the runtime is closing." });
}
