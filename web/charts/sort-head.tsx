import { texts } from "../texts.ts";

export interface Order {
  readonly key: string;
  readonly isDescending: boolean;
}

interface SortHeadProps {
  readonly columns: readonly { readonly key: string; readonly label: string; readonly isNumeric: boolean }[];
  readonly order: Order | null;
  onOrder(order: Order): void;
}

/** A table head. Pressing a column's name sorts by it; pressing again reverses the order. */
export function SortHead({ columns, order, onOrder }: SortHeadProps) {
  return (
    <thead>
      <tr>
        {columns.map(({ key, label, isNumeric }) => {
          const own = order?.key === key ? order : null;
          return (
            <th
              key={key}
              scope="col"
              className={isNumeric ? "is-number" : undefined}
              aria-sort={own === null ? "none" : own.isDescending ? "descending" : "ascending"}
            >
              <button
                type="button"
                title={texts.chart.sortBy(label)}
                onClick={() => onOrder({ key, isDescending: own !== null && !own.isDescending })}
              >
                {label}
                <span aria-hidden>{own === null ? "" : own.isDescending ? " ↓" : " ↑"}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
