export interface DelimitedTable {
  readonly columns: readonly string[];
  readonly count: number;
  /** One row by its number, as a record. */
  row(index: number): Readonly<Record<string, unknown>>;
}

/** Reads csv or tsv as far as a preview needs it: where each row starts, and the rows that are asked for. Blank lines are no rows, as in pandas. */
export function readDelimited(text: string, separator: "," | "\t"): DelimitedTable {
  const starts = findRecords(text);
  const record = (number: number): string[] => splitRecord(text.slice(starts[number]![0], starts[number]![1]), separator);
  const columns = starts.length === 0 ? [] : record(0);
  const row = (index: number): Readonly<Record<string, unknown>> => {
    const cells = record(index + 1);
    return Object.fromEntries(columns.map((name, at) => [name, toCell(cells[at])]));
  };
  return { columns, count: Math.max(0, starts.length - 1), row };
}

/** Lines, where a line break inside quotes does not end one. One pass: each quote and each line break is looked for once. */
function findRecords(text: string): [start: number, end: number][] {
  const records: [number, number][] = [];
  let start = text.startsWith("\uFEFF") ? 1 : 0;
  let quote = text.indexOf('"', start);
  let isQuoted = false;
  for (let from = start; start < text.length;) {
    const line = text.indexOf("\n", from);
    const end = line === -1 ? text.length : line;
    for (; quote !== -1 && quote < end; quote = text.indexOf('"', quote + 1)) isQuoted = !isQuoted;
    from = end + 1;
    if (isQuoted && line !== -1) continue;
    const last = text.charCodeAt(end - 1) === 0x0d ? end - 1 : end;
    if (last > start) records.push([start, last]);
    start = from;
  }
  return records;
}

function splitRecord(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator);
  const cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    if (character === '"' && isQuoted && line[at + 1] === '"') cell += line[++at]!;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      cells.push(cell);
      cell = "";
    } else cell += character;
  }
  return [...cells, cell];
}

function toCell(cell: string | undefined): unknown {
  if (cell === undefined || cell === "") return null;
  return /^-?\d{1,15}(?:\.\d{1,15})?(?:[eE][-+]?\d{1,2})?$/.test(cell) && !/^-?0\d/.test(cell) ? Number(cell) : cell;
}
