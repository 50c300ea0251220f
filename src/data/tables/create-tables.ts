import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem } from "../../evidence/contract.ts";
import type { Session } from "../../interpreter/open-session.ts";
import type { Gate } from "../../sandbox/gate.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import { askTable, toAskedTable, type TableReply, type TableSandbox } from "./ask-table.ts";
import { createTableSchemas, toKey, versionOf, type TableSchemas } from "./create-table-schemas.ts";
import type { TableQuestion } from "./table-code.ts";

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
  readonly gate?: Pick<Gate, "places" | "waiting"> | undefined;
  /** Tables open at once; a quarter of the places unless told. */
  readonly maxOpen?: number | undefined;
  readonly idleMs?: number | undefined;
}

interface OpenTable extends TableSandbox {
  readonly key: string;
  /** Questions that are asked or wait. */
  busy: number;
  usedAt: number;
}

const LOOK_EVERY_MS = 250;

export function createTables({ openSession, gate, maxOpen, idleMs = 60_000 }: TablesOptions): Tables {
  const most = maxOpen ?? Math.max(1, Math.floor((gate?.places ?? 4) / 4));
  const open = new Map<string, OpenTable>();
  const single = new Set<Promise<Session>>();
  const closing = new Set<Promise<void>>();
  let watch: NodeJS.Timeout | undefined;
  let closed = false;
  let freed = Promise.withResolvers<void>();

  async function ask(
    item: EvidenceItem,
    question: TableQuestion,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<TableReply> {
    refuseClosed();
    const version = versionOf(item);
    const table = await obtain(toKey(item, version), signal);
    // Whoever gives up only stops waiting: the table is parsed once, and is there when they ask again.
    const asked = askTable(table, toAskedTable(item), question).finally(() => release(table));
    asked.then((reply) => reply.ok || !reply.lost || drop(table)).catch(() => drop(table));
    return { ...(await orAbort(asked, signal)), version };
  }

  /** It counts as busy from here on, so that nobody gives it up before it is asked. */
  async function obtain(key: string, signal?: AbortSignal): Promise<OpenTable> {
    for (;;) {
      const found = open.get(key);
      if (found !== undefined) {
        found.busy += 1;
        return found;
      }
      if (open.size < most) break;
      const idlest = [...open.values()].filter(({ busy }) => busy === 0).sort((a, b) => a.usedAt - b.usedAt)[0];
      if (idlest !== undefined) drop(idlest);
      else await orAbort(freed.promise, signal);
      refuseClosed();
    }
    const table: OpenTable = { key, session: openSession(), bound: new Set(), busy: 1, usedAt: Date.now() };
    table.session.catch(() => drop(table));
    open.set(key, table);
    watch ??= setInterval(look, LOOK_EVERY_MS).unref();
    return table;
  }

  function release(table: OpenTable): void {
    table.busy -= 1;
    table.usedAt = Date.now();
    free();
  }

  function free(): void {
    freed.resolve();
    freed = Promise.withResolvers<void>();
  }

  function drop(table: OpenTable): void {
    if (open.get(table.key) !== table) return;
    open.delete(table.key);
    free();
    closeLater(table.session);
  }

  function closeLater(session: Promise<Session>): void {
    const done = session.then((one) => one.close()).catch(() => {});
    closing.add(done);
    void done.finally(() => closing.delete(done));
  }

  /** Gives up what nobody has asked for a while, and at once the one asked longest ago when others wait for a sandbox. */
  function look(): void {
    const idle = [...open.values()].filter(({ busy }) => busy === 0).sort((a, b) => a.usedAt - b.usedAt);
    const now = Date.now();
    for (const [index, table] of idle.entries()) {
      if (now - table.usedAt > idleMs || (index === 0 && (gate?.waiting ?? 0) > 0)) drop(table);
    }
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
    if (closed) throw new UsageError({ code: "TABLES_CLOSED", message: "Tables cannot be asked any more: the runtime is closing." });
  }

  async function close(): Promise<void> {
    closed = true;
    clearInterval(watch);
    free();
    for (const table of open.values()) drop(table);
    for (const session of single) closeLater(session);
    await Promise.all(closing);
  }

  return { ask, askEach, schemas: createTableSchemas({ ask, askEach }), close, [Symbol.asyncDispose]: close };
}
