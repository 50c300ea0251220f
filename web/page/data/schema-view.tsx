import type { TableColumn, TableSchema } from "../../../src/protocol/http-tables.ts";
import { formatExact } from "../../charts/format-value.ts";
import { texts } from "../../texts.ts";
import { formatCount } from "../format.ts";

/** Columns of a table: type, share of empty cells, distinct values, range. */
export function SchemaView({ schema }: { schema: TableSchema }) {
  return (
    <div className="data-table schema" role="region" aria-label={texts.data.schema} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {[texts.data.column, texts.data.type, texts.data.nulls, texts.data.distinct, texts.data.range].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {schema.columns.map((column) => (
            <tr key={column.name}>
              <th scope="row">{column.name}</th>
              <td title={column.dtype}>{column.type}</td>
              <td>
                <NullShare column={column} />
              </td>
              <td className="is-number">{column.distinct == null ? "" : formatCount(column.distinct)}</td>
              <td>{rangeOf(column)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NullShare({ column: { nulls, nullShare } }: { column: TableColumn }) {
  const percent = nullShare * 100;
  const words = nulls === 0 ? "0 %" : percent < 0.1 ? "<0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
  return (
    <span className="null-share" title={formatCount(nulls)}>
      <span className="null-bar" aria-hidden>
        <span style={{ width: `${percent}%` }} />
      </span>
      {words}
    </span>
  );
}

function rangeOf({ min, max, examples = [] }: TableColumn): string {
  if (min == null || max == null) return examples.slice(0, 3).map(toText).join(", ");
  return min === max ? toText(min) : `${toText(min)} … ${toText(max)}`;
}

function toText(value: unknown): string {
  if (typeof value === "number") return formatExact(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
