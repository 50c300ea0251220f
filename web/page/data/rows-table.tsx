import { memo } from "react";
import type { TableColumn, TableRows } from "../../../src/protocol/http-tables.ts";
import { SortHead, type Order } from "../../charts/sort-head.tsx";
import { TableCell } from "../../charts/table-cell.tsx";
import { texts } from "../../texts.ts";

interface RowsTableProps {
  readonly page: TableRows;
  readonly columns: readonly TableColumn[];
  readonly isStale: boolean;
  readonly order: Order | null;
  onOrder(order: Order): void;
}

export const RowsTable = memo(function RowsTable({ page, columns, isStale, order, onOrder }: RowsTableProps) {
  const numeric = new Set(columns.flatMap(({ name, type }) => (type === "integer" || type === "number" ? [name] : [])));
  return (
    <div className="data-table rows-table" role="region" aria-label={texts.data.rows} aria-busy={isStale} tabIndex={0}>
      <table>
        <SortHead
          columns={page.columns.map((name) => ({ key: name, label: name, isNumeric: numeric.has(name) }))}
          order={order}
          onOrder={onOrder}
        />
        <tbody>
          {page.rows.map((row, index) => (
            <tr key={page.offset + index}>
              {row.map((cell, place) => (
                <TableCell key={place} value={cell} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});
