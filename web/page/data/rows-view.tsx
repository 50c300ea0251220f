import { useEffect, useState } from "react";
import type { TableColumn } from "../../../src/protocol/http-tables.ts";
import type { Order } from "../../charts/sort-head.tsx";
import { texts } from "../../texts.ts";
import { server, type TableFilter } from "../api/server.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { FilterForm } from "./filter-form.tsx";
import { RowsTable } from "./rows-table.tsx";
import { useLoaded } from "./use-loaded.ts";

interface RowsViewProps {
  readonly conversationId: string;
  readonly alias: string;
  readonly columns: readonly TableColumn[];
}

const limit = 100;

/** The rows of an alias, one page at a time, with search, filters and sorting on the server. */
export function RowsView({ conversationId, alias, columns }: RowsViewProps) {
  const [search, setSearch] = useState("");
  const [filter, setFilter] = useState<readonly TableFilter[]>([]);
  const [order, setOrder] = useState<Order | null>(null);
  const [offset, setOffset] = useState(0);
  const words = useDelayed(search, 300);
  const [page, reload] = useLoaded(
    (signal) => {
      const sort = order ? [{ column: order.key, descending: order.isDescending }] : [];
      return server.rows(conversationId, alias, { offset, limit, search: words, filter, sort }, signal);
    },
    [conversationId, alias, offset, words, filter, order],
  );
  const changeQuery = (change: () => void): void => {
    setOffset(0);
    change();
  };
  return (
    <div className="rows">
      <p className="row">
        <input
          type="search"
          aria-label={texts.data.search}
          placeholder={texts.data.search}
          value={search}
          onChange={(event) => changeQuery(() => setSearch(event.target.value))}
        />
      </p>
      <FilterForm columns={columns} filter={filter} onChange={(next) => changeQuery(() => setFilter(next))} />
      {page.state === "loading" && <p role="status">{texts.conversation.loading}</p>}
      {page.state === "failed" && <FailureNotice error={page.error} onAgain={reload} />}
      {page.state === "ready" && (
        <>
          <div className="pager">
            <span role="status">
              {page.value.matched === 0
                ? texts.data.none
                : texts.data.showing(page.value.offset + 1, page.value.offset + page.value.returned, page.value.matched, page.value.total)}
            </span>
            <button type="button" disabled={offset === 0 || page.isStale} onClick={() => setOffset(Math.max(0, offset - limit))}>
              {texts.data.previous}
            </button>
            <button
              type="button"
              disabled={page.value.nextOffset === null || page.isStale}
              onClick={() => setOffset(page.value.nextOffset ?? offset)}
            >
              {texts.data.next}
            </button>
          </div>
          <RowsTable
            page={page.value}
            isStale={page.isStale}
            columns={columns}
            order={order}
            onOrder={(next) => changeQuery(() => setOrder(next))}
          />
          {(page.value.notes ?? []).map((note) => (
            <p key={note} className="soft">
              {note}
            </p>
          ))}
        </>
      )}
    </div>
  );
}

/** Debounces a value, so that the server is not asked at every key press. */
function useDelayed<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
