import { useMemo, useState } from "react";
import type { ChartCell } from "../../src/protocol/chart-spec.ts";
import { texts } from "../texts.ts";
import { SortHead, type Order } from "./sort-head.tsx";
import { TableCell } from "./table-cell.tsx";

interface DataTableProps {
  readonly caption: string;
  readonly columns: readonly { readonly key: string; readonly label: string }[];
  readonly rows: readonly Readonly<Record<string, ChartCell | undefined>>[];
}

const pageRows = 100;

/** A sortable table that shows 100 rows at a time. */
export function DataTable({ caption, columns, rows }: DataTableProps) {
  const [order, setOrder] = useState<Order | null>(null);
  const [count, setCount] = useState(pageRows);
  const sorted = useMemo(
    () => (order ? [...rows].sort((a, b) => compare(a[order.key], b[order.key], order.isDescending)) : rows),
    [rows, order],
  );
  const heads = useMemo(
    () => columns.map((column) => ({ ...column, isNumeric: rows.some((row) => typeof row[column.key] === "number") })),
    [columns, rows],
  );
  const shown = sorted.slice(0, count);
  return (
    <div className="data-table" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption className="visually-hidden">{caption}</caption>
        <SortHead columns={heads} order={order} onOrder={setOrder} />
        <tbody>
          {shown.map((row, index) => (
            <tr key={index}>
              {columns.map(({ key }) => (
                <TableCell key={key} value={row[key] ?? null} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <p className="data-table-foot">
        {texts.chart.shownRows(shown.length, rows.length)}
        {shown.length < rows.length && (
          <button type="button" onClick={() => setCount(count + pageRows * 5)}>
            {texts.chart.moreRows}
          </button>
        )}
      </p>
    </div>
  );
}

/** Numbers sort before text (after it when descending); empty values are always last. */
function compare(a: ChartCell | undefined, b: ChartCell | undefined, isDescending: boolean): number {
  if (a == null || b == null) return a == null && b == null ? 0 : a == null ? 1 : -1;
  return isDescending ? compareValues(b, a) : compareValues(a, b);
}

function compareValues(a: NonNullable<ChartCell>, b: NonNullable<ChartCell>): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return typeof a === typeof b ? (String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0) : typeof a === "number" ? -1 : 1;
}
