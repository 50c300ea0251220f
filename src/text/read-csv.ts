export interface CsvTable {
  /** The cells of the header row. */
  readonly columns: readonly string[];
  /** Number of rows after the header. Blank lines do not count, as in pandas. */
  readonly count: number;
  /** Returns the cells of a row, counted from 0 after the header. */
  cells(index: number): string[];
  /** Returns a row as a record. Cells that look like numbers become numbers, empty cells null. */
  row(index: number): Readonly<Record<string, unknown>>;
}

/** Indexes the rows of CSV or TSV text (RFC 4180) and splits a row into cells on demand. A quote inside an unquoted cell is a plain character, as in pandas. */
export function readCsv(text: string, separator: "," | "\t" = ","): CsvTable {
  const starts = findRows(text, separator);
  const split = (number: number): string[] => splitRow(text.slice(starts[number]![0], starts[number]![1]), separator);
  const columns = starts.length === 0 ? [] : split(0);
  const cells = (index: number): string[] => split(index + 1);
  const row = (index: number): Readonly<Record<string, unknown>> => {
    const values = cells(index);
    return Object.fromEntries(columns.map((name, at) => [name, toCell(values[at])]));
  };
  return { columns, count: Math.max(0, starts.length - 1), cells, row };
}

/** Finds the start and end of each row in one pass. A line break inside quotes does not end a row. */
function findRows(text: string, separator: string): [start: number, end: number][] {
  const rows: [number, number][] = [];
  let start = text.startsWith("\uFEFF") ? 1 : 0;
  let quote = text.indexOf('"', start);
  let lastClosing = -1; // a quote right after a closing quote is an escaped quote, so the cell continues
  let isQuoted = false;
  for (let from = start; start < text.length;) {
    const line = text.indexOf("\n", from);
    const end = line === -1 ? text.length : line;
    for (; quote !== -1 && quote < end; quote = text.indexOf('"', quote + 1)) {
      if (isQuoted) lastClosing = quote;
      else if (quote !== start && text[quote - 1] !== separator && quote - 1 !== lastClosing) continue;
      isQuoted = !isQuoted;
    }
    from = end + 1;
    if (isQuoted && line !== -1) continue;
    const last = text.charCodeAt(end - 1) === 0x0d ? end - 1 : end;
    if (last > start) rows.push([start, last]);
    start = from;
  }
  return rows;
}

function splitRow(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator);
  const cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    const isOpening = character === '"' && !isQuoted && (at === 0 || line[at - 1] === separator);
    if (character === '"' && isQuoted && line[at + 1] === '"') cell += line[++at]!;
    else if (isOpening || (character === '"' && isQuoted)) isQuoted = !isQuoted;
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
