/** CSV text as rows of cells, by RFC 4180: quotes, doubled quotes, and line ends inside of them. */
export function splitCsv(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  while (at < text.length) {
    const { cell, end } = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at, separator);
    row.push(cell);
    at = end;
    if (text[at] === separator) {
      at += 1;
      if (at === text.length) row.push("");
      continue;
    }
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push(row);
  return rows;
}

function readQuoted(text: string, start: number): { cell: string; end: number } {
  let cell = "";
  for (let from = start + 1; ;) {
    const close = text.indexOf('"', from);
    if (close === -1) return { cell: cell + text.slice(from), end: text.length };
    cell += text.slice(from, close);
    if (text[close + 1] !== '"') return { cell, end: close + 1 };
    cell += '"';
    from = close + 2;
  }
}

function readPlain(text: string, start: number, separator: string): { cell: string; end: number } {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { cell: text.slice(start, end), end };
}
