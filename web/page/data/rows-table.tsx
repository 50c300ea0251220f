import { memo } from "react";
import type { TableCell, TableRows } from "../../../src/protocol/http-tables.ts";
import { formatExact } from "../../charts/format-value.ts";
import { texts } from "../../texts.ts";

interface RowsTableProps {
  readonly page: TableRows;
  readonly isStale: boolean;
  readonly sort: { readonly column: string; readonly descending: boolean } | null;
  onSort(sort: { column: string; descending: boolean }): void;
}

export const RowsTable = memo(function RowsTable({ page, isStale, sort, onSort }: RowsTableProps) {
  return (
    <div className="data-table rows-table" role="region" aria-label={texts.data.rows} aria-busy={isStale} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {page.columns.map((column) => (
              <th key={column} scope="col" aria-sort={sort?.column !== column ? "none" : sort.descending ? "descending" : "ascending"}>
                <button
                  type="button"
                  title={texts.chart.sortBy(column)}
                  onClick={() => onSort({ column, descending: sort?.column === column && !sort.descending })}
                >
                  {column}
                  <span aria-hidden>{sort?.column !== column ? "" : sort.descending ? " ↓" : " ↑"}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.rows.map((row, index) => (
            <tr key={page.offset + index}>
              {row.map((cell, place) => (
                <Cell key={place} value={cell} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

function Cell({ value }: { value: TableCell }) {
  if (value === null) return <td className="is-null">–</td>;
  if (typeof value === "number") return <td className="is-number">{formatExact(value)}</td>;
  const text = String(value);
  return <td title={text.length > 40 ? text : undefined}>{text}</td>;
}
