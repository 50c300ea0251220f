import type { TableCell as Cell } from "../../src/protocol/http-tables.ts";
import { formatExact } from "./format-value.ts";

/** The column cuts longer text, so its tooltip shows all of it. */
const maxCharacters = 40;

/** One table cell: numbers with every digit, an empty value as a dash. */
export function TableCell({ value }: { value: Cell }) {
  if (value === null) return <td className="is-null">–</td>;
  if (typeof value === "number") return <td className="is-number">{formatExact(value)}</td>;
  const text = String(value);
  return <td title={text.length > maxCharacters ? text : undefined}>{text}</td>;
}
