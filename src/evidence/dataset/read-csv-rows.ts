/** Rows of a CSV as its text comes in pieces, by RFC 4180: quotes, doubled quotes, and line ends inside of them. Only one row is held at a time. */
export function* readCsvRows(pieces: Iterable<string>, separator: string): Generator<string[]> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    let at = 0;
    for (let row = readRow(text, at, separator, false); row !== null; row = readRow(text, at, separator, false)) {
      yield row.cells;
      at = row.end;
    }
    text = text.slice(at);
  }
  for (let at = 0; at < text.length;) {
    const row = readRow(text, at, separator, true)!;
    yield row.cells;
    at = row.end;
  }
}

/** Null when the row may go on in the next piece. */
function readRow(text: string, start: number, separator: string, isLast: boolean): { cells: string[]; end: number } | null {
  const cells: string[] = [];
  let at = start;
  if (!isLast && at >= text.length) return null;
  for (;;) {
    const { cell, end } = text[at] === '"' ? readQuoted(text, at, separator) : readPlain(text, at, separator);
    cells.push(cell);
    at = end;
    if (text[at] === separator) {
      at += 1;
      continue;
    }
    // At the very end: a line break, or a second half of a break or of a doubled quote, may be in the next piece.
    if (!isLast && at + 1 >= text.length && text[at] !== "\n") return null;
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    return { cells, end: at };
  }
}

function readQuoted(text: string, start: number, separator: string): { cell: string; end: number } {
  let cell = "";
  for (let from = start + 1; ;) {
    const close = text.indexOf('"', from);
    if (close === -1) return { cell: cell + text.slice(from), end: text.length };
    cell += text.slice(from, close);
    if (text[close + 1] !== '"') {
      const rest = readPlain(text, close + 1, separator); // what follows the quote belongs to the cell, as it does in pandas
      return { cell: cell + rest.cell, end: rest.end };
    }
    cell += '"';
    from = close + 2;
  }
}

function readPlain(text: string, start: number, separator: string): { cell: string; end: number } {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { cell: text.slice(start, end), end };
}
